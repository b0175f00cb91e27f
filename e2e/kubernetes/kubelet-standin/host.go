package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/cri-streaming/pkg/streaming"
	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	"k8s.io/kubernetes/pkg/kubelet/server"
)

// linesAtStart is how many lines the log holds when it is first read.
const linesAtStart = 10

// lineInterval is the time between two lines of a followed log.
const lineInterval = 200 * time.Millisecond

// host is the part of a kubelet that its server asks about one pod.
type host struct {
	// Stays nil: a request for anything that is not below panics, and net/http then closes its connection.
	server.HostInterface
	pod     *v1.Pod
	streams streaming.Server
}

// GetPodByName finds the one pod.
func (h *host) GetPodByName(namespace, name string) (*v1.Pod, bool) {
	return h.pod, namespace == h.pod.Namespace && name == h.pod.Name
}

// SyncLoopHealthCheck makes /healthz answer ok.
func (h *host) SyncLoopHealthCheck(*http.Request) error {
	return nil
}

// GetExec names the address at which the kubelet's server finds the command's streams.
func (h *host) GetExec(_ context.Context, _ string, _ types.UID, container string, cmd []string, streams remotecommand.Options) (*url.URL, error) {
	return address(h.streams.GetExec(&runtimeapi.ExecRequest{
		ContainerId: container,
		Cmd:         cmd,
		Stdin:       streams.Stdin,
		Stdout:      streams.Stdout,
		Stderr:      streams.Stderr,
		Tty:         streams.TTY,
	}))
}

// GetAttach names the address of the running process' streams.
func (h *host) GetAttach(_ context.Context, _ string, _ types.UID, container string, streams remotecommand.Options) (*url.URL, error) {
	return address(h.streams.GetAttach(&runtimeapi.AttachRequest{
		ContainerId: container,
		Stdin:       streams.Stdin,
		Stdout:      streams.Stdout,
		Stderr:      streams.Stderr,
		Tty:         streams.TTY,
	}))
}

// GetPortForward names the address of a port's streams.
func (h *host) GetPortForward(_ context.Context, name, _ string, _ types.UID, ports portforward.V4Options) (*url.URL, error) {
	return address(h.streams.GetPortForward(&runtimeapi.PortForwardRequest{PodSandboxId: name, Port: ports.Ports}))
}

func address(response interface{ GetUrl() string }, err error) (*url.URL, error) {
	if err != nil {
		return nil, err
	}
	return url.Parse(response.GetUrl())
}

// GetKubeletContainerLogs writes the log, which is all on stdout. Of the options it knows follow and tailLines.
func (h *host) GetKubeletContainerLogs(ctx context.Context, _, _ string, options *v1.PodLogOptions, stdout, _ io.Writer) error {
	if stdout == nil {
		return nil
	}
	first := int64(1)
	if options.TailLines != nil {
		first = max(first, linesAtStart+1-*options.TailLines)
	}
	return writeLog(ctx, stdout, first, options.Follow)
}

// writeLog writes the lines from the first one on, and, if followed, new ones until the reader goes or time is up.
func writeLog(ctx context.Context, out io.Writer, first int64, follow bool) error {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	tick := time.NewTicker(lineInterval)
	defer tick.Stop()
	for line := first; line <= linesAtStart || follow; line++ {
		if line > linesAtStart {
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
			}
		}
		if _, err := fmt.Fprintln(out, "line", line); err != nil {
			return nil // The reader is gone, which is how following ends.
		}
	}
	return nil
}
