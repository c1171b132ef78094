package verify

import (
	"testing"

	"github.com/caddy-terraform/caddy-terraform-registry/command/commandtest"
)

func TestMain(m *testing.M) { commandtest.Main(m) }
