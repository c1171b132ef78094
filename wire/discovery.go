package wire

import (
	"encoding/json"
	"errors"
	"fmt"
)

// DiscoveryPath is fixed by the remote service discovery protocol.
const DiscoveryPath = "/.well-known/terraform.json"

// Login has the settings that clients need for `terraform login`: login.v1 of the
// discovery document.
type Login struct {
	Client     string   `json:"client"`
	GrantTypes []string `json:"grant_types"`
	Authz      string   `json:"authz"`
	Token      string   `json:"token"`
	Ports      []int    `json:"ports,omitempty"`
	Scopes     []string `json:"scopes,omitempty"`
}

// A Discovery is the service discovery document. Services that are not offered are not
// in it (checklist 10).
type Discovery struct {
	Login *Login `json:"login.v1,omitempty"`

	// Modules and Providers are the URLs of the services. They end in a slash:
	// otherwise clients drop the last segment of Providers (checklist 7), and some
	// do not append the slash that Modules lacks (8).
	Modules   string `json:"modules.v1"`
	Providers string `json:"providers.v1"`

	// Tlog is the URL of the transparency log, which clients pass over.
	Tlog string `json:"tlog.v1,omitempty"`
}

// Encode returns the document.
func (d Discovery) Encode() *Document {
	return documentOf(d)
}

// A Service is a service in a discovery document.
type Service string

// The services of a registry.
const (
	ProvidersService Service = "providers.v1"
	ModulesService   Service = "modules.v1"
)

var serviceNames = map[Service]string{ProvidersService: "provider", ModulesService: "module"}

// DecodeService reads the URL of a service from another registry's discovery document.
// It may be relative to the document's own URL.
func DecodeService(body []byte, s Service) (string, error) {
	var services map[string]json.RawMessage
	if err := json.Unmarshal(body, &services); err != nil {
		return "", errors.New("its discovery document is not a JSON object")
	}
	raw, ok := services[string(s)]
	if !ok {
		return "", fmt.Errorf("it does not offer a %s registry", serviceNames[s])
	}
	var url *string
	if err := json.Unmarshal(raw, &url); err != nil || url == nil {
		return "", fmt.Errorf("it does not offer a %s registry of a version that is known", serviceNames[s])
	}
	return *url, nil
}
