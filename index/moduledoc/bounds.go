package moduledoc

// Limits of reading a package. Real modules stay far below: modules with many variables have
// some hundreds of them, in files of some 100 KiB.
const (
	maxFile          = 1 << 20   // bytes of a configuration file
	maxConfiguration = 4 << 20   // bytes of all of them
	maxFiles         = 2_000     // configuration files
	maxReadme        = 512 << 10 // bytes of a README…
	maxReadmes       = 4 << 20   // …and of all of them
	maxLicense       = 16 << 10  // bytes of a licence, whose first lines say which it is
	maxModules       = 100       // submodules, and as many examples
	maxName          = 1 << 10   // bytes of a path in the package
)

// Limits of the documentation kept of a module.
const (
	maxVariables   = 2_000
	maxOutputs     = 2_000
	maxCalls       = 1_000
	maxResources   = 5_000
	maxProviders   = 200
	maxValidations = 100
	maxProblems    = 50

	// maxText bounds each text in bytes: a description, a type, a default. maxLabel
	// bounds names, sources and constraints.
	maxText  = 32 << 10
	maxLabel = 1 << 10
)

// Limit of reading a README for a Summary: its beginning, in bytes.
const (
	maxIntroduction          = 16 << 10
	maxSubmoduleIntroduction = 4 << 10
)
