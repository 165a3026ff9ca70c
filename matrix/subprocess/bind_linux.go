package subprocess

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// bind gives the command a process group of its own, so that cancelling reaches its children, too,
// and has the kernel kill it when this process ends, however that happens.
func bind(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	killGroupOnCancel(cmd)
}

// starts is served by one thread that lives as long as the process: the kernel sends the signal
// when the thread that started a child ends, not the whole process.
var starts = sync.OnceValue(func() chan<- func() {
	queue := make(chan func())
	go func() {
		runtime.LockOSThread()
		for start := range queue {
			start()
		}
	}()
	return queue
})

func start(cmd *exec.Cmd) error {
	result := make(chan error)
	starts() <- func() { result <- cmd.Start() }
	return <-result
}
