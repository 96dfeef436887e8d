package rpc

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// start runs heddle COMMAND of the build, and gives its port.
func start(t *testing.T, words ...string) uint16 {
	tool := filepath.Join(os.Getenv("HEDDLE_GO_FILES"), "..", "..", "bin", "heddle")
	if _, err := os.Stat(tool); err != nil {
		t.Skip("the tool is not built")
	}
	c := exec.Command(tool, words...)
	c.Env = append(os.Environ(), "HEDDLE_CONFIG=off", "HEDDLE_PROBE=off")
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Process.Signal(os.Interrupt)
		c.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	port, bad := strconv.Atoi(strings.TrimSpace(line[strings.LastIndex(line, ":")+1:]))
	if err != nil || bad != nil {
		t.Fatal(line, err, bad)
	}
	return uint16(port)
}

func code(err error) int {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// A session from a tracker, and one without: files, functions, tensors, errors.
func TestSessions(t *testing.T) {
	tracker := start(t, "rpc-tracker")
	start(t, "rpc-server", "--tracker", fmt.Sprintf("127.0.0.1:%d", tracker), "--key", "k")
	direct := start(t, "rpc-server", "--key", "k")
	for end := time.Now().Add(20 * time.Second); !strings.Contains(must[string](t)(Summary("127.0.0.1", tracker)), `"free":1`); {
		if time.Now().After(end) {
			t.Fatal("the server did not register")
		}
		time.Sleep(20 * time.Millisecond)
	}
	use(t, must[*Session](t)(Request("127.0.0.1", tracker, "k", 1, Options{SessionSeconds: 60})))
	use(t, must[*Session](t)(Connect("127.0.0.1", direct, "k", Options{})))
	if _, err := Connect("127.0.0.1", direct, "wrong", Options{}); code(err) != CodeOtherKey {
		t.Fatal(err)
	}
	if _, err := Connect("127.0.0.1", 1, "k", Options{}); code(err) != CodeLost {
		t.Fatal(err)
	}
}

func use(t *testing.T, s *Session) {
	t.Helper()
	defer s.Close()
	data := []byte{0, 1, 2, 255}
	if err := s.Upload("a.bin", data); err != nil {
		t.Fatal(err)
	}
	if got := must[[]byte](t)(s.Download("a.bin")); !bytes.Equal(got, data) {
		t.Fatal(got)
	}
	if err := s.Upload("empty", nil); err != nil {
		t.Fatal(err)
	}
	if got := must[[]byte](t)(s.Download("empty")); len(got) != 0 {
		t.Fatal(got)
	}
	if err := s.Upload("../a", data); code(err) != CodeFailed {
		t.Fatal(err)
	}
	path := must[Function](t)(s.Function(0, "tvm.rpc.server.workpath"))
	if got := must[any](t)(s.Call(path, "x")); !strings.HasSuffix(got.(string), "/x") {
		t.Fatal(got)
	}
	if _, err := s.Call(path, struct{}{}); code(err) != CodeInvalid {
		t.Fatal(err)
	}
	if _, err := s.Call(path, 1, 2.5, nil, true, data); code(err) != CodeFailed {
		t.Fatal(err)
	}
	if _, err := s.Function(0, "no.such.function"); code(err) != CodeMissing {
		t.Fatal(err)
	}
	if !must[bool](t)(s.DeviceExists(1, 0)) || must[bool](t)(s.DeviceExists(8, 3)) {
		t.Fatal("devices")
	}
	x := must[*Tensor](t)(s.Tensor(1, 0, Float32, 2, 1))
	back := make([]byte, 8)
	if err := s.Write(x, []byte("12345678")); err != nil {
		t.Fatal(err)
	}
	if err := s.Read(x, back); err != nil || string(back) != "12345678" || len(x.Shape()) != 2 {
		t.Fatal(err, back)
	}
	if err := s.Read(x, back[:4]); code(err) != CodeInvalid {
		t.Fatal(err)
	}
	if err := s.FreeTensor(x); err != nil {
		t.Fatal(err)
	}
	if err := s.Free(path); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Call(path); code(err) != CodeFailed {
		t.Fatal(err)
	}
}
