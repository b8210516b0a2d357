package main

import "os"

// Windows can only kill.

func stopProcess(*os.Process) error        { return os.ErrInvalid }
func continueProcess(*os.Process) error    { return os.ErrInvalid }
func terminateProcess(p *os.Process) error { return p.Kill() }
