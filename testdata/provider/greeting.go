package main

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// greeting is the resource TYPE_greeting. It greets a person on behalf of the
// provider's version, which shows which build has run.
type greeting struct{}

type greetingState struct {
	Name types.String `tfsdk:"name"`
	Text types.String `tfsdk:"text"`
}

func newGreeting() resource.Resource { return greeting{} }

func (greeting) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_greeting"
}

func (greeting) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		Description: "A greeting.",
		Attributes: map[string]schema.Attribute{
			"name": schema.StringAttribute{
				Description:   "Who is greeted.",
				Required:      true,
				PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()},
			},
			"text": schema.StringAttribute{
				Description: `"hello NAME from VERSION".`,
				Computed:    true,
			},
		},
	}
}

func (greeting) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var g greetingState
	resp.Diagnostics.Append(req.Plan.Get(ctx, &g)...)
	if resp.Diagnostics.HasError() {
		return
	}
	g.Text = types.StringValue("hello " + g.Name.ValueString() + " from " + version)
	resp.Diagnostics.Append(resp.State.Set(ctx, g)...)
}

// Read keeps the state as it is: a greeting lives nowhere else.
func (greeting) Read(context.Context, resource.ReadRequest, *resource.ReadResponse) {}

// Update is never called: the only argument forces a new greeting.
func (greeting) Update(context.Context, resource.UpdateRequest, *resource.UpdateResponse) {}

func (greeting) Delete(context.Context, resource.DeleteRequest, *resource.DeleteResponse) {}
