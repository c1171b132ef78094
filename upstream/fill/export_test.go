package fill

// Bounds, for tests outside of the package.
const (
	Spare    = spare
	MaxDates = maxDates
)
