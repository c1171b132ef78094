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

// AskServer sends a request to the registries of the running server, by its admin API, and decodes
// the answer. failure says what has failed, with a verb for the address of the API, which AskServer
// returns.
func AskServer(fl caddycmd.Flags, method, path, failure string, answer any) (server string, err error) {
	server, err = caddycmd.DetermineAdminAPIAddress(fl.String("address"), nil, "", "")
	if err != nil {
		return "", fmt.Errorf("--address: %w", err)
	}
	response, err := caddycmd.AdminAPIRequest(server, method, "/terraform_registry/"+path, nil, nil)
	if err != nil {
		return "", fmt.Errorf(failure+": %w", server, err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(answer); err != nil {
		return "", fmt.Errorf("the admin API at %s gives an unexpected answer: %w", server, err)
	}
	return server, nil
}

// Usage asks the running server how often what it has was downloaded, by the root of each tree,
// and for the downloads of the last days by platform.
func Usage(fl caddycmd.Flags, days int) (all map[string]*wire.TreeUsage, err error) {
	_, err = AskServer(fl, http.MethodGet, "usage?days="+strconv.Itoa(days),
		"the admin API at %s does not tell what was downloaded: start Caddy with the option usage, or name another address with --address", &all)
	return all, err
}
