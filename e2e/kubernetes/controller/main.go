// Command controller starts a controller-runtime manager and stops it once its controllers have started.
//
// Usage: KUBECONFIG=FILE controller RESOURCE.VERSION.GROUP..., such as pods.v1. or deployments.v1.apps. For each
// resource there is a controller: the manager's own REST mapper finds the kind, the manager's cache lists and watches
// it. When all caches are filled, it prints one line `GROUP/VERSION RESOURCE` for each, sorted.
package main

import (
	"context"
	"fmt"
	"os"
	"sort"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// longest is how long the start of a manager may take.
const longest = 2 * time.Minute

func main() {
	ctrl.SetLogger(logr.Discard())
	ctx, cancel := context.WithTimeout(context.Background(), longest)
	defer cancel()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "controller:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, resources []string) error {
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	config.QPS = -1 // Without a limit: what is waited for is the server.
	manager, err := ctrl.NewManager(config, ctrl.Options{Metrics: server.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	var objects []client.Object
	var lines []string
	for _, resource := range resources {
		mapping, err := addController(manager, resource)
		if err != nil {
			return fmt.Errorf("%s: %w", resource, err)
		}
		objects = append(objects, objectOf(mapping.GroupVersionKind))
		lines = append(lines, mapping.Resource.GroupVersion().String()+" "+mapping.Resource.Resource)
	}
	if err := start(ctx, manager, objects); err != nil {
		return err
	}
	sort.Strings(lines)
	for _, line := range lines {
		fmt.Println(line)
	}
	return nil
}

// addController makes a controller of a resource and says what the manager knows of it.
func addController(manager ctrl.Manager, name string) (*meta.RESTMapping, error) {
	resource, _ := schema.ParseResourceArg(name)
	if resource == nil {
		return nil, fmt.Errorf("not RESOURCE.VERSION.GROUP")
	}
	kind, err := manager.GetRESTMapper().KindFor(*resource)
	if err != nil {
		return nil, err
	}
	nothing := reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
		return reconcile.Result{}, nil
	})
	if err := ctrl.NewControllerManagedBy(manager).Named(name).For(objectOf(kind)).Complete(nothing); err != nil {
		return nil, err
	}
	return manager.GetRESTMapper().RESTMapping(kind.GroupKind(), kind.Version)
}

func objectOf(kind schema.GroupVersionKind) client.Object {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(kind)
	return object
}

// start runs the manager until all objects of these kinds are in its cache.
func start(ctx context.Context, manager ctrl.Manager, objects []client.Object) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	select {
	case err := <-ended:
		return fmt.Errorf("the manager has ended: %v", err)
	case <-manager.Elected(): // Nobody is elected: the cache runs.
	}
	for _, object := range objects {
		// Returns when the informer has listed everything.
		if _, err := manager.GetCache().GetInformer(ctx, object); err != nil {
			return err
		}
	}
	stop()
	return <-ended
}
