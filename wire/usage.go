package wire

// Usage is how often a provider or module was downloaded. Days are written as 2006-01-02.
type Usage struct {
	Address string `json:"address"`

	// Since is the first day whose downloads are known; empty if there is none yet.
	Since string `json:"since"`

	// Downloads are all that are known, Recent those of the last 30 days. LastUsed is empty if
	// there are none.
	Downloads uint64 `json:"downloads"`
	Recent    uint64 `json:"downloads_30_days"`
	LastUsed  string `json:"last_used"`

	Versions []VersionUsage `json:"versions"` // that were downloaded
	Days     []DayUsage     `json:"days"`
	By       []UserUsage    `json:"by,omitempty"`
}

// VersionUsage is how often a version was downloaded.
type VersionUsage struct {
	Version   string `json:"version"`
	Downloads uint64 `json:"downloads"`
	Recent    uint64 `json:"downloads_30_days"`
	LastUsed  string `json:"last_used"`
}

// DayUsage is how often a version was downloaded on a day.
type DayUsage struct {
	Day       string `json:"day"`
	Version   string `json:"version"`
	Platform  string `json:"platform,omitempty"` // OS_ARCH; empty for a module
	Downloads uint64 `json:"downloads"`
}

// UserUsage is how often a user or group asked where a version is.
type UserUsage struct {
	Who      string `json:"who"`
	Version  string `json:"version"`
	Requests uint64 `json:"requests"`
	LastUsed string `json:"last_used"`
}

// TreeUsage is the usage of all that a tree has or had.
type TreeUsage struct {
	// Counted are the days on which downloads were counted, oldest first. Of other days,
	// nothing is known.
	Counted []string `json:"counted"`

	Addresses []Usage `json:"addresses"`
}

// EncodeUsage returns the answer to …/usage.
func EncodeUsage(u *Usage) *Document {
	return documentOf(u)
}
