package remote

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/caddyserver/caddy/v2"
	caddycmd "github.com/caddyserver/caddy/v2/cmd"
	"github.com/spf13/cobra"

	"github.com/caddy-terraform/caddy-terraform-registry/wire"
)

// AddAdminFlag adds the flag for the admin API of the running server.
func AddAdminFlag(cmd *cobra.Command) {
	cmd.Flags().String("address", "", "The `address` of the running server's admin API (default: "+caddy.DefaultAdminListen+")")
}

// Usage asks the running server how often what it has was downloaded, by the root of each tree,
// and for the downloads of the last days by platform.
func Usage(fl caddycmd.Flags, days int) (map[string]*wire.TreeUsage, error) {
	server, err := caddycmd.DetermineAdminAPIAddress(fl.String("address"), nil, "", "")
	if err != nil {
		return nil, fmt.Errorf("--address: %w", err)
	}
	response, err := caddycmd.AdminAPIRequest(server, http.MethodGet, "/terraform_registry/usage?days="+strconv.Itoa(days), nil, nil)
	if err != nil {
		return nil, fmt.Errorf("the admin API at %s does not tell what was downloaded: start Caddy with the option usage, or name another address with --address: %w", server, err)
	}
	defer response.Body.Close()
	var all map[string]*wire.TreeUsage
	if err := json.NewDecoder(response.Body).Decode(&all); err != nil {
		return nil, fmt.Errorf("the admin API at %s gives an unexpected answer: %w", server, err)
	}
	return all, nil
}
