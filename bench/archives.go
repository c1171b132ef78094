package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/caddy-terraform/caddy-terraform-registry/bench/internal/server"
)

// archives are the hashes in VERSION.json, by platform.
type archives map[string][]string

func archivesIn(a *server.Answer) (archives, error) {
	if a.Status != http.StatusOK {
		return nil, fmt.Errorf("the answer is %d", a.Status)
	}
	var document struct {
		Archives map[string]struct {
			Hashes []string `json:"hashes"`
		} `json:"archives"`
	}
	if err := json.Unmarshal(a.Body, &document); err != nil {
		return nil, err
	}
	all := make(archives)
	for platform, archive := range document.Archives {
		all[platform] = archive.Hashes
	}
	return all, nil
}

// read counts the packages that the index has read. Of those that are only
// listed nobody knows the hash of the files in them.
func (a archives) read() (packages int) {
	for _, hashes := range a {
		if slices.ContainsFunc(hashes, func(hash string) bool { return strings.HasPrefix(hash, "h1:") }) {
			packages++
		}
	}
	return packages
}
