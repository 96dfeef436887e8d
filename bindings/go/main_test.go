package heddle

// What all tests share: the files that prepare.py wrote, and those of the digits example.

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestMain(m *testing.M) {
	os.Setenv("HEDDLE_CONFIG", "off")
	os.Setenv("HEDDLE_DEVICES", "cpu,sim:0,sim:1")
	os.Exit(m.Run())
}

// A file that prepare.py wrote to HEDDLE_GO_FILES.
func prepared(t testing.TB, name string) string {
	t.Helper()
	folder := os.Getenv("HEDDLE_GO_FILES")
	if folder == "" {
		t.Skip("HEDDLE_GO_FILES is not set: python prepare.py FOLDER writes the files, run_tests.py does it all")
	}
	return filepath.Join(folder, name)
}

func digitsFile(name string) string { return filepath.Join("..", "..", "examples", "digits", name) }

func ok[T any](t testing.TB) func(T, error) T {
	return func(x T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
}

func noError(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func near(t testing.TB, have, want []float32, tolerance float64) {
	t.Helper()
	if len(have) != len(want) {
		t.Fatalf("%d values, expected %d", len(have), len(want))
	}
	for i := range have {
		if d := math.Abs(float64(have[i]) - float64(want[i])); !(d <= tolerance) {
			t.Fatalf("value %d is %g, expected %g", i, have[i], want[i])
		}
	}
}

// How many times a loop goes round: n, or all of them where HEDDLE_GO_FULL is set.
func rounds(full, n int) int {
	if os.Getenv("HEDDLE_GO_FULL") != "" {
		return full
	}
	return n
}

// The process's memory in KiB.
func rss(t testing.TB) int {
	data, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip("there is no /proc")
	}
	for _, line := range strings.Split(string(data), "\n") {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "VmRSS:" {
			n, _ := strconv.Atoi(fields[1])
			return n
		}
	}
	t.Skip("/proc does not say how much memory there is")
	return 0
}

// Digits: images scaled to float32 as the model takes them, and what numpy made of them in float64.
func digits(t testing.TB) (images [][]float32, expected [][]float32) {
	t.Helper()
	pixels := ok[[]uint8](t)(Copy[uint8](ok[*Array](t)(LoadNpy(digitsFile("images.npy")))))
	array := ok[*Array](t)(LoadNpy(digitsFile("expected.npy")))
	scores := ok[[]float32](t)(Copy[float32](array))
	for i := 0; i < int(array.GetShape()[0]); i++ {
		image := make([]float32, 64)
		for k := range image {
			image[k] = float32(pixels[i*64+k])
		}
		images, expected = append(images, image), append(expected, scores[i*10:i*10+10])
	}
	return images, expected
}

func addOne(args ...*Value) (interface{}, error) { return args[0].AsInt64() + 1, nil }

var errOurs = fmt.Errorf("an error of ours")

var behind = map[string]Callback{}

// Says what a registered function does. Each is registered once: compiled code keeps it.
func setFunction(t testing.TB, name string, f Callback) {
	t.Helper()
	_, registered := behind[name]
	if behind[name] = f; !registered {
		noError(t, RegisterFunction(func(args ...*Value) (interface{}, error) { return behind[name](args...) }, name))
	}
}
