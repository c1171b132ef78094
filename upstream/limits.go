package upstream

import "time"

// What an origin may cost: how large and how slow its answers may be, how often
// it is asked, and what may wait for it. All of it is here.

// The maximum sizes of documents, in bytes. Real ones have a tenth of it and less; a
// registry that needs more would not be read by every client either.
const (
	maxDiscovery = 1 << 20 // that of the clients
	maxVersions  = 8 << 20
	maxMetadata  = 4 << 20

	// The public registry lists all submodules of all versions of a module, with what
	// they call and require, and describes every input of every submodule.
	maxModuleDocument = 16 << 20

	// Callers keep these in memory for many releases. SHA256SUMS has a line of some
	// 110 bytes for each platform, of which the largest providers have 15 to 20.
	maxChecksums = 64 << 10
	maxSignature = 16 << 10
	maxManifest  = 16 << 10
)

// MaxPackage is the size in bytes beyond which a package is refused.
const MaxPackage = 4 << 30

// What a module may cost, beyond which it is refused. Real ones have a few hundred
// files and less than a megabyte; those that bring programs along have some hundred. A
// repository that is larger is better fetched by git, which receives one folder of it.
const (
	maxModule       = 1 << 30   // bytes of an archive
	maxUnpacked     = 4 << 30   // bytes of its files…
	maxModuleRatio  = 100       // …and times its own size, or that of what git received…
	freeUnpacked    = 256 << 20 // …but these bytes always
	maxArchiveFiles = 50_000    // and folders, also of what is not kept of it
	maxModuleFiles  = 10_000    // of a repository: the index packs no more
	maxModuleNames  = 4 << 20   // bytes of all their names, which are in memory
	maxModuleDepth  = 100       // folders, each of which is opened for every file in it

	// maxModuleCalls is how many bytes of configuration are read to find what else of its
	// package a module needs, and maxModulePaths how many paths in them are looked for.
	maxModuleCalls = 32 << 20
	maxModulePaths = 10_000
)

// How much is done at the same time for each origin. A client requests all platforms
// and files of a release within moments, and any client may request anything: that
// must overload neither the origin nor this server.
const (
	// MaxDownloads saturate any line, and leave the disk able to keep up. More of
	// them would only each be slower.
	MaxDownloads = 8

	// maxDocuments are small: their requests wait for answers rather than for bytes.
	maxDocuments = 16

	// MaxWaiting may be queued. Each costs a few kilobytes; with more, clients would
	// have given up before it is their turn.
	MaxWaiting = 256

	// maxWaitingPerClient is more than a fleet behind one address requests within
	// seconds.
	maxWaitingPerClient = 64

	// maxClients that request the same thing are told apart; one more has no effect.
	maxClients = 64
)

// A package without a minimum rate could occupy its slot for days. This is a little
// less than each of MaxDownloads gets on a line of 1 Mbit/s. The rate is the mean since the
// download began, or since the last full rateWindow, and counts from the time on
// that an origin may take for a document. Git's servers compute before they send: they have
// the whole window.
const (
	minRate    = 10 << 10 // bytes a second
	rateWindow = time.Minute
)

// maxResumes is how many times a download is resumed after its connection broke.
const maxResumes = 4

// Few attempts and short waits: a client is waiting, and retries by itself.
const (
	maxRetries = 2
	minWait    = 250 * time.Millisecond
	maxWait    = 2 * time.Second
)

const (
	// failuresInARow open the breaker of an origin. Each is a request with all its
	// retries.
	failuresInARow = 3

	// breakerPause is how long it stays open.
	breakerPause = 30 * time.Second
)

// maxRedirects is the limit of the clients.
const maxRedirects = 10

// maxModuleHops is how many times a URL is asked where a module's archive is. Real ones
// know it.
const maxModuleHops = 2

// defaultTimeout is that of the clients, which are waiting meanwhile.
const defaultTimeout = 10 * time.Second

// discoveryLifetime is how long the URL of a service is reused.
const discoveryLifetime = time.Hour

// What a repository of modules may cost. Of most servers only the files of one module are
// received; those that cannot leave out the others send the whole commit. Repositories of
// modules have some megabytes.
const (
	maxRepository = 1 << 30  // bytes that are received, with those of submodules
	maxGitRequest = 16 << 20 // bytes of one request of git, which names what it lacks
	maxRefs       = 64 << 20 // bytes of a list of refs, which git has in memory; half a million

	// maxGitTime ends what neither stalls nor is slow, such as packs that take long to
	// unpack.
	maxGitTime = 10 * time.Minute

	// maxRepositories are fetched from at the same time: git and its server both
	// compute more than they send.
	maxRepositories = 2

	maxSubmodules     = 50
	maxSubmoduleDepth = 3
	maxGitmodules     = 64 << 10 // bytes
)
