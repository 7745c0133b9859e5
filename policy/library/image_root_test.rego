package packhof.rules.image_root_test

import data.packhof.rules.fixtures_test
import data.packhof.rules.image_root

test_passes_clean if {
	count(image_root.findings) == 0 with input as fixtures_test.clean
}

test_passes_other_users if {
	every user in ["1000", "1000:0", "app", "app:root", "10", "rooty", "nobody"] {
		not root(user)
	}
}

test_fires_root if {
	every user in ["", "0", "root", "0:0", "root:root", "0:1000", "00", "+0", "-0", ":1000", " root"] {
		root(user)
	}
}

test_fires_one_of_two_platforms if {
	other := object.union(fixtures_test.image_config, {"platform": "linux/arm64", "user": "root"})
	artifact := object.union(fixtures_test.image, {"image": {"configs": [fixtures_test.image_config, other]}})
	found := image_root.findings with input as fixtures_test.with_artifacts([artifact])
	{[f.level, f.params.platforms] | some f in found} == {["review", "linux/arm64"]}
}

root(user) if {
	config := object.union(fixtures_test.image_config, {"user": user})
	artifact := object.union(fixtures_test.image, {"image": {"configs": [config]}})
	found := image_root.findings with input as fixtures_test.with_artifacts([artifact])
	count(found) == 1
}
