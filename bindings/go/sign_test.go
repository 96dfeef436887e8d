package heddle

import (
	"errors"
	"os"
	"path/filepath"
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
	public, err := PublicKey(in("a"))
	if err != nil || len(public) < 40 {
		t.Fatal(public, err)
	}
}
