package main

import (
	"context"
	"runtime"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// build is the data source TYPE_build, which returns the build of the running provider.
type build struct{}

type buildState struct {
	Version  types.String `tfsdk:"version"`
	Platform types.String `tfsdk:"platform"`
}

func newBuild() datasource.DataSource { return build{} }

func (build) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_build"
}

func (build) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		Description: "The running build of the provider.",
		Attributes: map[string]schema.Attribute{
			"version":  schema.StringAttribute{Description: "Its version.", Computed: true},
			"platform": schema.StringAttribute{Description: "Its platform, as in linux_amd64.", Computed: true},
		},
	}
}

func (build) Read(ctx context.Context, _ datasource.ReadRequest, resp *datasource.ReadResponse) {
	resp.Diagnostics.Append(resp.State.Set(ctx, buildState{
		Version:  types.StringValue(version),
		Platform: types.StringValue(runtime.GOOS + "_" + runtime.GOARCH),
	})...)
}
