package heddle

import (
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const addGraph = `{"heddle":{"version":1,"opset":17},"nodes":[{"op":"null","name":"x","inputs":[]},{"op":"Add","name":"y",` +
	`"inputs":[[0,0,0],[0,0,0]]}],"arg_nodes":[0],"heads":[[1,0,0]],"node_row_ptr":[0,1,2],` +
	`"attrs":{"shape":["list_shape",[[2],[2]]],"dltype":["list_str",["float32","float32"]]}}`

// Signed, encrypted and verified files, and what trust refuses.
func TestSigning(t *testing.T) {
	folder := t.TempDir()
	in := func(name string) string { return filepath.Join(folder, name) }
	if err := CreateSigningKey(in("a")); errors.Is(err, ErrUnsupported) {
		t.Skip("this build has no HEDDLE_SODIUM")
	} else if err != nil {
		t.Fatal(err)
	}
	if err := CreateEncryptionKey(in("c")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(in("net.json"), []byte(addGraph), 0o644); err != nil {
		t.Fatal(err)
	}
	how := SignOptions{Sign: in("a"), Encrypt: in("c"), Sequence: 4}
	if err := Pack(in("net.heddle"), PackOptions{Models: []PackModel{{Graph: in("net.json")}}, Sign: how}); err != nil {
		t.Fatal(err)
	}
	says, err := Verify(in("net.heddle"), in("a.pub"))
	if err != nil || says.Sequence != 4 || says.KeyID == "" || says.EncryptionKeyID == "" || says.Detached {
		t.Fatal(says, err)
	}
	if read, err := ReadSignature(in("net.heddle")); err != nil || read != says {
		t.Fatal(read, err)
	}
	m, err := Load(in("net.heddle"), WithTrust(in("a.pub")), WithKey(in("c")), WithDevices("cpu"))
	if err != nil {
		t.Fatal(err)
	}
	m.Close()
	if _, err := Load(in("net.json"), WithTrust(in("a.pub"))); !errors.Is(err, ErrDenied) {
		t.Fatal(err)
	}
	if _, err := LoadGraph([]byte(addGraph), nil, WithTrust(in("a.pub"))); !errors.Is(err, ErrDenied) {
		t.Fatal(err)
	}
	if err := Sign(in("net.json"), in("signed.json"), SignOptions{Sign: in("a"), Appended: true}); err != nil {
		t.Fatal(err)
	}
	text, _ := os.ReadFile(in("signed.json"))
	m, err = LoadGraph(text, nil, WithTrust(in("a.pub")), WithDevices("cpu"))
	if err != nil {
		t.Fatal(err)
	}
	m.Close()
	if err := Decrypt(in("net.heddle"), in("plain.heddle"), in("c")); err != nil {
		t.Fatal(err)
	}
	testKeyFunc(t, in("c"), in("net.heddle"), in("plain.heddle"), says.EncryptionKeyID)
	public, err := PublicKey(in("a"))
	if err != nil || len(public) < 40 {
		t.Fatal(public, err)
	}
}

// A function gives the key of an encrypted file; one that fails, panics or gives no key is an error of the call.
func testKeyFunc(t *testing.T, keyFile, packed, plain, keyID string) {
	text, err := os.ReadFile(keyFile)
	if err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(string(text))
	key, err := base64.StdEncoding.DecodeString(words[len(words)-1])
	if err != nil || len(key) < 32 {
		t.Fatal(words, err)
	}
	key = key[len(key)-32:]
	want, err := os.ReadFile(plain)
	if err != nil {
		t.Fatal(err)
	}
	defer SetKeyFunc(nil)
	asked := ""
	give := func(ask KeyFunc) error {
		asked = ""
		if err := SetKeyFunc(ask); err != nil {
			t.Fatal(err)
		}
		os.Remove(plain)
		return Decrypt(packed, plain, "")
	}
	if err := give(func(id string) ([]byte, error) { asked = id; return key, nil }); err != nil || asked != keyID {
		t.Fatal(err, asked, keyID)
	}
	if found, err := os.ReadFile(plain); err != nil || string(found) != string(want) {
		t.Fatal(err)
	}
	if err := give(func(id string) ([]byte, error) { return key[:31], nil }); !errors.Is(err, ErrInvalid) {
		t.Fatal(err)
	}
	if err := give(func(id string) ([]byte, error) { panic("no") }); err == nil || !strings.Contains(err.Error(), "panic in a Go function: no") {
		t.Fatal(err)
	}
	if err := give(func(id string) ([]byte, error) { return make([]byte, 32), nil }); !errors.Is(err, ErrDenied) {
		t.Fatal(err)
	}
	if err := give(nil); err == nil {
		t.Fatal("there was a key")
	}
}
