package main

import (
	"context"
	"errors"
	"io"
	"net"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/creack/pty"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"
)

// longest is how long a command or a followed log lasts at most, so that a forgotten one ends.
const longest = 10 * time.Minute

// signalBase is what shells add to a signal's number to make an exit code.
const signalBase = 128

// container plays the container runtime: what it runs are processes of this machine.
type container struct {
	root string // Working directory of the processes.
}

// Exec runs a command and reports its exit code.
func (c *container) Exec(ctx context.Context, _ string, argv []string, in io.Reader, out, errOut io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize) error {
	ctx, cancel := context.WithTimeout(ctx, longest)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = c.root

	// The process dies with this program. Linux ties that to the thread that started it, which the lock keeps alive.
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	if tty {
		return exitCode(runOnTerminal(cmd, in, out, resize))
	}
	return exitCode(runOnPipes(cmd, in, out, errOut))
}

// Attach talks to a process that echoes its input; without input it shows the log.
func (c *container) Attach(ctx context.Context, id string, in io.Reader, out, errOut io.WriteCloser, tty bool, resize <-chan remotecommand.TerminalSize) error {
	if in == nil {
		return writeLog(ctx, out, 1, true)
	}
	return c.Exec(ctx, id, []string{"cat"}, in, out, errOut, tty, resize)
}

// PortForward joins a stream to a port of this machine until the server side is done.
func (c *container) PortForward(ctx context.Context, _ string, port int32, stream io.ReadWriteCloser) error {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))))
	if err != nil {
		return err
	}
	defer conn.Close()
	go func() {
		_, _ = io.Copy(conn, stream) // Ends with the client, or with the connection below it.
		_ = conn.(*net.TCPConn).CloseWrite()
	}()
	_, err = io.Copy(stream, conn)
	return err
}

func runOnPipes(cmd *exec.Cmd, in io.Reader, out, errOut io.Writer) error {
	cmd.Stdout, cmd.Stderr = out, errOut
	if in != nil {
		// Not cmd.Stdin: Wait would then not return before the client ends its input.
		stdin, err := cmd.StdinPipe()
		if err != nil {
			return err
		}
		go func() {
			_, _ = io.Copy(stdin, in) // Fails when the process is done reading.
			_ = stdin.Close()
		}()
	}
	return cmd.Run()
}

func runOnTerminal(cmd *exec.Cmd, in io.Reader, out io.Writer, resize <-chan remotecommand.TerminalSize) error {
	terminal, err := pty.Start(cmd)
	if err != nil {
		return err
	}
	defer terminal.Close()
	go func() {
		for size := range resize {
			_ = pty.Setsize(terminal, &pty.Winsize{Rows: size.Height, Cols: size.Width}) // Fails once the command is done.
		}
	}()
	if in != nil {
		go func() { _, _ = io.Copy(terminal, in) }()
	}
	_, _ = io.Copy(out, terminal) // A terminal whose processes are gone reads as an I/O error.
	return cmd.Wait()
}

// exitCode turns what os/exec says of an ended process into the form that the streaming library reports.
func exitCode(err error) error {
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return err
	}
	code := exit.ExitCode()
	if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		code = signalBase + int(status.Signal())
	}
	return utilexec.CodeExitError{Err: err, Code: code}
}
