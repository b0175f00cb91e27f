// Command kubelet-standin answers a kube-apiserver as a kubelet would for one running pod that no container runtime runs.
//
// Requests are answered by the kubelet's own server and streaming library, so what travels is what a real kubelet of
// the same release sends: exec, attach, port-forward and logs, over SPDY and WebSocket. Only the container is made up:
//   - exec runs the command as a process of this machine, in --root, on a terminal where one is asked for
//   - attach talks to a process of its own (cat), which ends when its input does; without input it shows the log
//   - port-forward connects to 127.0.0.1
//   - the log has ten lines; followed, it gets one more every 200 ms
//
// Nothing outlives ten minutes or this program. Once it accepts connections it prints `serving on ADDRESS`.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cri-streaming/pkg/streaming"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/server"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "kubelet-standin:", err)
		os.Exit(1)
	}
}

func run() error {
	listen := flag.String("listen", "127.0.0.1:10250", "address and port to serve on; port 0 takes a free one")
	certFile := flag.String("tls-cert-file", "", "serving certificate, PEM")
	keyFile := flag.String("tls-private-key-file", "", "its private key, PEM")
	clientCAFile := flag.String("client-ca-file", "", "CA of the kube-apiserver's kubelet client certificate, PEM; others are refused")
	root := flag.String("root", ".", "working directory of the commands that exec runs")
	podName := flag.String("pod", "default/standin/main", "the pod, as NAMESPACE/NAME/CONTAINER")
	flag.Parse()

	pod, err := parsePod(*podName)
	if err != nil {
		return err
	}
	tlsConfig, err := loadTLS(*certFile, *keyFile, *clientCAFile)
	if err != nil {
		return err
	}
	streams, err := serveStreams(&container{root: *root})
	if err != nil {
		return err
	}
	handler := server.NewServer(context.Background(), &host{pod: pod, streams: streams}, nil, nil, nil, nil,
		&kubeletconfig.KubeletConfiguration{EnableDebuggingHandlers: true})

	listener, err := net.Listen("tcp", *listen)
	if err != nil {
		return err
	}
	fmt.Println("serving on", listener.Addr())
	kubelet := http.Server{Handler: &handler, TLSConfig: tlsConfig}
	return kubelet.ServeTLS(listener, "", "")
}

func parsePod(text string) (*v1.Pod, error) {
	parts := strings.Split(text, "/")
	if len(parts) != 3 {
		return nil, fmt.Errorf("--pod %q is not NAMESPACE/NAME/CONTAINER", text)
	}
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: parts[0], Name: parts[1]},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: parts[2]}}},
	}, nil
}

// loadTLS makes a configuration that proves the server's identity and demands a client certificate of the given CA.
func loadTLS(certFile, keyFile, clientCAFile string) (*tls.Config, error) {
	cert, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("loading --tls-cert-file and --tls-private-key-file: %w", err)
	}
	pem, err := os.ReadFile(clientCAFile)
	if err != nil {
		return nil, fmt.Errorf("reading --client-ca-file: %w", err)
	}
	clientCAs := x509.NewCertPool()
	if !clientCAs.AppendCertsFromPEM(pem) {
		return nil, errors.New("--client-ca-file holds no certificate")
	}
	return &tls.Config{
		Certificates: []tls.Certificate{cert},
		ClientCAs:    clientCAs,
		ClientAuth:   tls.RequireAndVerifyClientCert,
		MinVersion:   tls.VersionTLS12,
	}, nil
}

// serveStreams starts the server that a container runtime runs for the kubelet. The kubelet proxies to it, unencrypted,
// with a one-time token in the path; it is reached from this machine only.
func serveStreams(runtime streaming.Runtime) (streaming.Server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	config := streaming.DefaultConfig
	config.BaseURL = &url.URL{Scheme: "http", Host: listener.Addr().String()}
	streams, err := streaming.NewServer(config, runtime)
	if err != nil {
		return nil, err
	}
	go func() {
		err := http.Serve(listener, streams)
		fmt.Fprintln(os.Stderr, "kubelet-standin: streaming:", err)
		os.Exit(1)
	}()
	return streams, nil
}
