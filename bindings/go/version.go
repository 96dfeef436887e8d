package heddle

// That the library is of the version that this module is made for.

import "strings"

// fits says whether a library's version has the module's first number, and before 1.0 its second.
func fits(library string) bool {
	have, want := strings.SplitN(library, ".", 3), strings.SplitN(ModuleVersion, ".", 3)
	return len(have) == 3 && have[0] == want[0] && (want[0] != "0" || have[1] == want[1])
}

func checkVersion(library string) error {
	if fits(library) {
		return nil
	}
	return &Error{Status: ErrABI, Message: "this Go module is heddle " + ModuleVersion + ", and libheddle is " + library +
		": use the two of one version"}
}
