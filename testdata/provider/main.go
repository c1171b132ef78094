// Command provider is a small, real Terraform provider for the tests. Tests publish it in a
// registry, and Terraform and OpenTofu run it at apply.
//
// Its type name and version are set at build time, so that one source makes
// every provider a test needs:
//
//	go build -ldflags "-X main.typeName=demo-beta -X main.version=1.2.3"
package main

import (
	"context"
	"log"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-framework/resource"
)

// Set by the linker. The version is printed in greetings, so it may say more than a
// version, such as which of two builds of 1.0.0 this is.
var (
	typeName = "demo"
	version  = "dev"
)

func main() {
	err := providerserver.Serve(context.Background(), newDemo, providerserver.ServeOpts{
		Address: "registry.example.com/acme/" + typeName,
		// Every client since 0.12 speaks 5; 6 would shut out the old ones.
		ProtocolVersion: 5,
	})
	if err != nil {
		log.Fatal(err)
	}
}

// demo is the provider: it needs no configuration and no network.
type demo struct{}

func newDemo() provider.Provider { return demo{} }

// Metadata names the provider. Hyphens cannot be part of a resource type: resources of
// google-beta are called google_…, resources of demo-beta demo_beta_….
func (demo) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName = strings.ReplaceAll(typeName, "-", "_")
	resp.Version = version
}

func (demo) Schema(context.Context, provider.SchemaRequest, *provider.SchemaResponse) {}

func (demo) Configure(context.Context, provider.ConfigureRequest, *provider.ConfigureResponse) {}

func (demo) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{newGreeting}
}

func (demo) DataSources(context.Context) []func() datasource.DataSource {
	return []func() datasource.DataSource{newBuild}
}
