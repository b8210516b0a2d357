// Command swarm tries to break the promise of the sidecar: never over the
// budget, never two holders, never a lost or doubled admission, whichever
// process dies, whenever. It is for the project's own use and is not shipped.
//
// Many hosts (host.go) share one store. Each starts a sidecar that lives for a
// fraction of a second, keeps many calls in flight on it, and ends it in one of
// the ways that processes end: most are killed. What the hosts know together
// (board.go) makes them contend for the same runs, tasks and resources. After
// the given number of admissions, check.go asks three judges whether the
// promise was kept at every entry of the audit.
//
//	swarm -n 100000 -procs 16 -binary bin/taskforce
//
// The exit status is 1 if it was not. The seed repeats the choices of the
// hosts, though not which process overtakes which.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"time"
)

// options say what a swarm does.
type options struct {
	admissions, hosts int
	seed              uint64
	binary, root      string
	// store is the URL of the schema that is used instead of a file in the root folder.
	store            string
	minLife, maxLife time.Duration
}

func main() {
	if len(os.Args) > 2 && os.Args[1] == launcher {
		launch(os.Args[2:])
		return
	}
	o := options{}
	flag.IntVar(&o.admissions, "n", 5000, "how many admissions to make")
	flag.IntVar(&o.hosts, "procs", 16, "how many sidecars live at once")
	flag.Uint64Var(&o.seed, "seed", 0, "the seed of all choices; 0 draws one")
	flag.StringVar(&o.binary, "binary", "bin/taskforce", "the sidecar")
	flag.StringVar(&o.root, "root", "", "the empty folder of the store; by default one that is removed if all is well")
	flag.StringVar(&o.store, "store", "", "the postgres:// URL of an empty schema, which is judged in a copy in the folder")
	flag.DurationVar(&o.minLife, "min-life", 50*time.Millisecond, "the shortest life of a sidecar, from its first answer")
	flag.DurationVar(&o.maxLife, "max-life", 500*time.Millisecond, "the longest life of a sidecar")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	violations, err := o.run(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "swarm:", err)
	}
	if err != nil || len(violations) > 0 {
		stop()
		os.Exit(1)
	}
}

// run lets the swarm loose and has its work judged. An error means that there
// is no verdict.
func (o options) run(ctx context.Context) (violations []string, err error) {
	if o.seed == 0 {
		o.seed = rand.Uint64()
	}
	if o.root == "" {
		if o.root, err = os.MkdirTemp("", "swarm-"); err != nil {
			return nil, err
		}
		defer func() {
			if err == nil && len(violations) == 0 {
				err = os.RemoveAll(o.root)
			}
		}()
	}
	if o.binary, err = exec.LookPath(o.binary); err != nil {
		return nil, err
	}
	fmt.Printf("seed %d, %d hosts, %d admissions, store %s\n", o.seed, o.hosts, o.admissions, o.root)
	start := time.Now()
	s := newSwarm(o)
	if err := s.rage(ctx); err != nil {
		return nil, err
	}
	s.report(time.Since(start))
	violations, err = s.judge(ctx)
	for _, v := range violations {
		fmt.Println("violation:", v)
	}
	fmt.Printf("%d violations\n", len(violations))
	return violations, err
}
