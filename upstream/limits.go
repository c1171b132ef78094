package upstream

import "time"

// The limits for an origin: the size and the slowness of its answers, the frequency of
// requests, and the number of waiting requests. All limits are in this file.

// The maximum sizes of documents, in bytes. Real documents have a tenth of it and less.
// Not every client could read the documents of a registry that needs more.
const (
	maxDiscovery = 1 << 20 // the clients' limit
	maxVersions  = 8 << 20
	maxMetadata  = 4 << 20

	// The public registry lists all submodules of all versions of a module, with the
	// modules that they call and their requirements, and describes every input of every
	// submodule.
	maxModuleDocument = 16 << 20

	// Callers keep these in memory for many releases. SHA256SUMS has a line of some
	// 110 bytes for each platform. The largest providers have 15 to 20 platforms.
	maxChecksums = 64 << 10
	maxSignature = 16 << 10
	maxManifest  = 16 << 10
)

// MaxPackage is the size in bytes beyond which a package is refused.
const MaxPackage = 4 << 30

// The limits for a module. A larger module is refused. Real modules have a few hundred
// files and less than a megabyte; modules with programs have some hundred megabytes.
// Git is better for a larger repository, since it receives one folder of it.
const (
	maxModule       = 1 << 30   // bytes of an archive
	maxUnpacked     = 4 << 30   // bytes of the unpacked files…
	maxModuleRatio  = 100       // …and ratio to the size of the archive, or of git's packs…
	freeUnpacked    = 256 << 20 // …but this many bytes are always allowed
	maxArchiveFiles = 50_000    // files and folders, also those that are not kept
	maxModuleFiles  = 10_000    // of a repository; the index does not pack more
	maxModuleNames  = 4 << 20   // bytes of all names, which are in memory
	maxModuleDepth  = 100       // folders; each is opened for every file in it

	// maxModuleCalls is the number of bytes of configuration that are read to find the
	// files of its package that a module needs, and maxModulePaths the number of paths
	// in them.
	maxModuleCalls = 32 << 20
	maxModulePaths = 10_000
)

// The limits for concurrent work for each origin. A client requests all platforms and
// files of a release within moments, and any client may request anything. That must
// overload neither the origin nor this server.
const (
	// MaxDownloads saturate any line, and the disk can keep up with them. More
	// downloads would only be slower.
	MaxDownloads = 8

	// maxDocuments is higher: documents are small, and their requests wait for answers
	// rather than for bytes.
	maxDocuments = 16

	// MaxWaiting is the number of requests that may be queued. Each costs a few
	// kilobytes. With more of them, clients would give up before their turn.
	MaxWaiting = 256

	// maxWaitingPerClient is more than the requests of a fleet behind one address
	// within seconds.
	maxWaitingPerClient = 64

	// maxClients is the number of clients whose requests for the same thing are
	// distinguished. Further clients have no effect.
	maxClients = 64
)

// A package without a minimum rate could occupy its slot for days. This rate is a
// little lower than the share of each of MaxDownloads on a line of 1 Mbit/s. The rate
// is the mean since the download began, or since the last full rateWindow. It counts
// after the time that an origin may take for a document. Git's servers compute before
// they send, so they have the whole window.
const (
	minRate    = 10 << 10 // bytes a second
	rateWindow = time.Minute
)

// maxResumes is how many times a download is resumed after its connection broke, counted from the
// last connection that has brought worthResuming bytes. A line that is cut every minute still
// brings a large package, and an origin that sends one byte a connection is soon given up.
const (
	maxResumes    = 4
	worthResuming = 1 << 20
)

// Few attempts and short waits, since a client is waiting and retries by itself.
const (
	maxRetries = 2
	minWait    = 250 * time.Millisecond
	maxWait    = 2 * time.Second
)

const (
	// failuresInARow open the breaker of a host. A failure is a request with all its
	// retries.
	failuresInARow = 3

	// breakerPause is the time for which the breaker stays open.
	breakerPause = 30 * time.Second
)

// maxRedirects is the same as in clients.
const maxRedirects = 10

// maxModuleHops is the number of times that a URL is asked for the location of a
// module's archive. Real URLs know it.
const maxModuleHops = 2

// defaultTimeout is the same as in clients, which are waiting meanwhile.
const defaultTimeout = 10 * time.Second

// discoveryLifetime is the time for which the URL of a service is reused.
const discoveryLifetime = time.Hour

// The limits for a repository of modules. Most servers send only the files of one
// module; servers that cannot leave out the others send the whole commit. Repositories
// of modules have some megabytes.
const (
	maxRepository = 1 << 30  // received bytes, with submodules
	maxGitRequest = 16 << 20 // bytes of one request of git, which lists the missing objects
	maxRefs       = 64 << 20 // bytes of a list of refs, which git has in memory; half a million

	// maxGitTime ends fetches that neither stall nor are slow, such as packs that take
	// long to unpack.
	maxGitTime = 10 * time.Minute

	// maxRepositories is the number of concurrent fetches. Git and its server both
	// compute more than they send.
	maxRepositories = 2

	// maxTagsTime is for a list of tags, which is one request.
	maxTagsTime = time.Minute

	// maxCodeHosts is like maxRepositories, for a client of several hosts: one that is slow must not
	// keep the others from being asked.
	maxCodeHosts = 6

	maxSubmodules     = 50
	maxSubmoduleDepth = 3
	maxGitmodules     = 1 << 20 // bytes
)
