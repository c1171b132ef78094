package fill

// What tests outside of the package measure with.
const (
	Spare    = spare
	MaxDates = maxDates
)
