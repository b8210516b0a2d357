package pgtest

import (
	"os/exec"
	"syscall"
)

// dieWithTest ends the server with the test binary, however that ends.
func dieWithTest(cmd *exec.Cmd) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGQUIT
}
