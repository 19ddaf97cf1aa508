// Pins h2spec, the HTTP/2 conformance checker, to versions that Debian 12's Go 1.19 builds.
module penstock/tools/h2spec

go 1.19

require (
	github.com/fatih/color v1.15.0
	github.com/spf13/cobra v1.7.0
	github.com/summerwind/h2spec v2.2.1+incompatible
	golang.org/x/net v0.17.0
)
