package heddle

// Untrusted models, through the package: the files of HEDDLE_GO_FILES/mutants as they are, then with bytes
// changed, for some seconds. Every result is read in every way; run_tests.py has this under AddressSanitizer, too.

import (
	"context"
	"math/rand"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

const mostElements = 1 << 16 // of an input

func mutantSeconds() time.Duration {
	if n, err := strconv.Atoi(os.Getenv("HEDDLE_GO_MUTANTS")); err == nil {
		return time.Duration(n) * time.Second
	}
	return time.Duration(rounds(120, 5)) * time.Second
}

func mutated(data []byte, rng *rand.Rand) []byte {
	data = append([]byte(nil), data...)
	for n := 1 + rng.Intn(3); n > 0 && len(data) > 0; n-- {
		at := rng.Intn(len(data))
		switch rng.Intn(4) {
		case 0:
			data[at] ^= 1 << rng.Intn(8)
		case 1:
			data[at] = []byte{0, 1, 2, 8, 127, 128, 255, byte(rng.Intn(256))}[rng.Intn(8)]
		case 2:
			data = append(data[:at], data[min(len(data), at+1+rng.Intn(8)):]...)
		case 3:
			data = append(data[:at:at], append([]byte{data[at]}, data[at:]...)...)
		}
	}
	return data
}

func min(a, b int) int {
	if a < b {
		return a
	}
	return b
}

// An array for an input or an output as it is declared, of ones and zeros; nil where it would be large or cannot be.
func declaredArray(info IOInfo, open int64) *Array {
	dtype, err := ParseDType(info.DType)
	if err != nil {
		return nil
	}
	shape, count := append([]int64{}, info.Shape...), int64(1)
	for i, d := range shape {
		if d < 0 {
			shape[i] = open
		}
		if count *= shape[i]; count > mostElements {
			return nil
		}
	}
	array, err := Empty(shape, dtype)
	if err != nil {
		return nil
	}
	for _, ones := range []interface{}{make([]int64, array.Len()), make([]int32, array.Len()), make([]bool, array.Len())} {
		switch s := ones.(type) {
		case []int64:
			for i := range s {
				s[i] = int64(1 + i%3)
			}
		case []int32:
			for i := range s {
				s[i] = int32(1 + i%3)
			}
		case []bool:
			for i := range s {
				s[i] = i%2 == 0
			}
		}
		_ = array.CopyFrom(ones) // where it is of that type
	}
	return array
}

func readResult(t *testing.T, array *Array, info IOInfo) {
	t.Helper()
	if info.DType != "" && array.GetDType() != info.DType {
		t.Fatalf("output %s is declared %s and came as %s", info.Name, info.DType, array.GetDType())
	}
	slice, _ := array.AsSlice()
	_ = slice
	_ = array.CopyTo(make([]float32, array.Len()))
	_ = array.CopyTo(make([]int8, 3))
	if clone, err := array.Clone(); err == nil {
		_ = clone.CopyFrom(array)
		clone.Close()
	}
}

func runMutant(t *testing.T, path string, open int64) bool {
	m, err := Load(path, WithDevices("cpu:0,sim:0"), WithPool(1))
	if err != nil {
		return false
	}
	defer m.Close()
	inputs, err := m.Inputs()
	if err != nil {
		return false
	}
	outputs, err := m.Outputs()
	if err != nil {
		return false
	}
	values := make([]interface{}, len(inputs))
	for i := range inputs {
		array := declaredArray(inputs[i], open)
		if array == nil {
			return false
		}
		defer array.Close()
		values[i] = array
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	results, err := m.RunContext(ctx, values...)
	for i := range results {
		readResult(t, results[i], outputs[i])
		results[i].Close()
	}
	into := make([]interface{}, len(outputs))
	for i := range outputs {
		if array := declaredArray(outputs[i], open); array != nil && i%2 == 0 {
			defer array.Close()
			into[i] = array
		} else {
			into[i] = make([]float32, 3)
		}
	}
	_ = m.RunInto(into, values...)
	c, failed := m.Prepare()
	if failed != nil {
		return err == nil
	}
	defer c.Close()
	for i := range inputs {
		_ = c.SetInput(inputs[i].Name, values[i])
	}
	if c.RunContext(ctx) == nil {
		for i := range outputs {
			if array, err := c.Output(i); err == nil {
				readResult(t, array, outputs[i])
			}
		}
	}
	return err == nil
}

func TestMutants(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(prepared(t, "mutants"), "*.onnx"))
	if len(files) == 0 {
		t.Fatal("there are no models: python prepare.py FOLDER writes them")
	}
	end, rng := time.Now().Add(mutantSeconds()), rand.New(rand.NewSource(1))
	path, done, ran := filepath.Join(t.TempDir(), "mutant.onnx"), 0, 0
	for time.Now().Before(end) {
		file := files[done%len(files)]
		data := ok[[]byte](t)(os.ReadFile(file))
		if done >= len(files) {
			data = mutated(data, rng)
		}
		noError(t, os.WriteFile(path, data, 0o600))
		if runMutant(t, path, int64(3-done/len(files)%2)) {
			ran++
		}
		done++
	}
	t.Logf("%d mutants in %v, of which %d ran", done, mutantSeconds(), ran)
	if done < len(files) {
		t.Skipf("only %d of the %d files were run in %v", done, len(files), mutantSeconds())
	}
}
