package fill

// Limits, for tests outside of the package.
const (
	Spare    = spare
	MaxDates = maxDates
)
