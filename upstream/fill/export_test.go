package fill

const (
	Spare        = spare
	MostReleases = mostReleases
)
