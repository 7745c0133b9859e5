package scan

import (
	"github.com/anchore/syft/syft"
	"github.com/anchore/syft/syft/cataloging"
)

// configuration is syft's default without everything that asks the network or
// looks outside the artifact, spelt out so that a new default changes nothing.
func configuration() *syft.CreateSBOMConfig {
	packages := syft.DefaultCreateSBOMConfig().Packages
	packages.Golang.UsePackagesLib = false // would run the go command
	packages.Golang.SearchRemoteLicenses = false
	packages.Golang.SearchLocalModCacheLicenses = false
	packages.Golang.SearchLocalVendorLicenses = false
	packages.Golang.LocalModCacheDir = ""
	packages.Golang.Proxies = nil
	packages.JavaArchive.UseNetwork = false
	packages.JavaArchive.UseMavenLocalRepository = false
	packages.JavaArchive.MavenLocalRepositoryDir = ""
	packages.JavaArchive.ResolveTransitiveDependencies = false
	packages.JavaScript.SearchRemoteLicenses = false
	packages.Python.SearchRemoteLicenses = false
	packages.Cpp.VcpkgAllowGitClone = false
	packages.Nix.CaptureOwnedFiles = false

	return syft.DefaultCreateSBOMConfig().
		WithPackagesConfig(packages).
		WithoutFiles().     // a tree's come with the request, an image's would swell the document
		WithParallelism(1). // twice the same order, and memory that does not grow with the processors
		WithUnknownsConfig(cataloging.UnknownsConfig{
			RemoveWhenPackagesDefined: true,
			IncludeUnexpandedArchives: true,
			// Every shell script would be one.
			IncludeExecutablesWithoutPackages: false,
		})
}
