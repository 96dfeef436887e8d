package heddle

import (
	"errors"
	"testing"
)

func TestTheModuleHasTheLibrarysVersion(t *testing.T) {
	if Version() != ModuleVersion {
		t.Fatalf("libheddle is %s, the module %s: set ModuleVersion", Version(), ModuleVersion)
	}
	noError(t, checkVersion(Version()))
	noError(t, checkVersion("0.1.7"))
	for _, other := range []string{"0.2.0", "1.1.0", "", "0.1", "x.y.z"} {
		if err := checkVersion(other); !errors.Is(err, ErrABI) {
			t.Fatalf("%q: %v", other, err)
		}
	}
}

func TestRankOfOne(t *testing.T) {
	rt := ok[*Runtime](t)(Default())
	if rank, size := rt.Rank(); rank != 0 || size != 1 {
		t.Error(rank, size)
	}
	rt.FailRanks(ErrIO, "a file is missing")
	if _, err := Load(prepared(t, "batch.json"), WithDevices("cpu")); err != nil {
		t.Error(err)
	}
}
