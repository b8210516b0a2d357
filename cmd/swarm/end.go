package main

import (
	"math/rand/v2"
	"time"
)

// end ends the sidecar with calls in flight. A process that is already dead is
// no error: that is what this is about.
func (s *sidecar) end(f fate, random *rand.Rand) error {
	process := s.cmd.Process
	switch f {
	case killed:
		_ = process.Kill()
	case stoppedAndKilled:
		_ = stopProcess(process)
		time.Sleep(time.Duration(random.Int64N(int64(50 * time.Millisecond))))
		_ = process.Kill()
	case terminated:
		_ = terminateProcess(process)
	case closed:
		return s.in.Close()
	case hostDied:
		_ = process.Kill()
		s.in.Close()
		s.out.Close()
	case hostVanished:
		_ = process.Kill()
	}
	return nil
}
