// Command pause holds the namespaces of a pod, as the program of the same name in Kubernetes' own image does: it waits
// until it is told to stop and collects the processes that others leave behind.
package main

import (
	"os"
	"os/signal"
	"syscall"
)

func main() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGCHLD)
	for received := range signals {
		if received != syscall.SIGCHLD {
			return
		}
		for collected := 1; collected > 0; {
			collected, _ = syscall.Wait4(-1, nil, syscall.WNOHANG, nil) // Fails when no child is left.
		}
	}
}
