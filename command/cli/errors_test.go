package cli

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/spf13/cobra"
)

func TestInterrupted(t *testing.T) {
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		rule      string
		interrupt bool
		want      string
	}{
		{"by a signal", true, "interrupted before it was done"},
		{"by nobody", false, "the disk is full"},
	} {
		t.Run(test.rule, func(t *testing.T) {
			cmd := &cobra.Command{SilenceErrors: true, SilenceUsage: true}
			cmd.RunE = RunE(func(cmd *cobra.Command, _ []string) error {
				ctx, stop := Interruptible(cmd)
				defer stop()
				if !test.interrupt {
					return errors.New("the disk is full")
				}
				if err := self.Signal(os.Interrupt); err != nil {
					t.Skip(err) // as on Windows
				}
				<-ctx.Done()
				return errors.New("registry.example.com: " + ctx.Err().Error())
			})
			cmd.SetArgs(nil)
			if err := cmd.ExecuteContext(context.Background()); err == nil || err.Error() != test.want {
				t.Errorf("got error %v, want %s", err, test.want)
			}
		})
	}
}
