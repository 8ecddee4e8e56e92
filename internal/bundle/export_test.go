package bundle

// For the tests of the embedded catalogue, which are outside the package.
var (
	CompareGolden = compareGolden
	Documents     = documents
)
