package heddle

// Signed and encrypted files of models: keys, signing, verification. docs/signing.md describes them.

// #include <stdlib.h>
// #include "bridge.h"
import "C"

import (
	"fmt"
	"runtime/cgo"
	"runtime/debug"
	"sync"
	"unsafe"
)

// SignOptions names the keys that sign and encrypt a file; "" leaves one out.
type SignOptions struct {
	Sign     string // a secret signing key
	Encrypt  string // an encryption key
	Sequence uint64 // is signed too; a trust file may demand a smallest one
	Detached bool   // the signature goes to FILE.sig, whatever the file is
	Appended bool   // the signature goes behind the file, whatever it is
}

// Signature is what a file says of its signature and its encryption.
type Signature struct {
	KeyID           string // "": it is not signed
	Sequence        uint64
	Detached        bool   // in FILE.sig
	EncryptionKeyID string // "": it is not encrypted
	Bytes           uint64 // of the file, without a signature behind it
}

// In memory of texts.
func (o SignOptions) c(texts *cstrings) *C.heddle_sign_options {
	size := C.size_t(unsafe.Sizeof(C.heddle_sign_options{}))
	p := C.calloc(1, size)
	if p == nil {
		texts.err = ErrNoMemory
		return nil
	}
	texts.all = append(texts.all, p)
	out := (*C.heddle_sign_options)(p)
	out.struct_size = size
	out.sign, out.encrypt = texts.optional(o.Sign), texts.optional(o.Encrypt)
	out.sequence = C.uint64_t(o.Sequence)
	if o.Detached {
		out.flags |= C.HEDDLE_SIGN_DETACHED
	}
	if o.Appended {
		out.flags |= C.HEDDLE_SIGN_APPENDED
	}
	return out
}

// fileCall calls with a path and the options of more in C.
func fileCall(path string, call func(name *C.char, texts *cstrings, words *C.heddle_error) C.heddle_status) error {
	words, texts := newErr(), cstrings{}
	defer freeErr(words)
	defer texts.free()
	name := texts.add(path)
	if texts.err != nil {
		return texts.err
	}
	s := call(name, &texts, words)
	if texts.err != nil {
		return texts.err
	}
	if s != C.HEDDLE_OK {
		return about{file: path}.errorOf(s, words)
	}
	return nil
}

// CreateSigningKey writes a secret key to a new file, and its public half, a trust file, to PATH.pub.
func CreateSigningKey(path string) error {
	return fileCall(path, func(name *C.char, _ *cstrings, words *C.heddle_error) C.heddle_status {
		return C.heddle_key_create(name, C.HEDDLE_KEY_SIGNING, words)
	})
}

// CreateEncryptionKey writes a key that encrypts and decrypts to a new file.
func CreateEncryptionKey(path string) error {
	return fileCall(path, func(name *C.char, _ *cstrings, words *C.heddle_error) C.heddle_status {
		return C.heddle_key_create(name, C.HEDDLE_KEY_ENCRYPTION, words)
	})
}

// PublicKey gives the public half of a signing key, a line of a trust file.
func PublicKey(path string) (string, error) {
	var out *C.char
	err := fileCall(path, func(name *C.char, _ *cstrings, words *C.heddle_error) C.heddle_status {
		return C.heddle_key_public(name, &out, words)
	})
	defer C.heddle_free(unsafe.Pointer(out))
	return C.GoString(out), err
}

// Sign signs and encrypts a file; output "" is the file itself.
func Sign(path, output string, options SignOptions) error {
	return fileCall(path, func(name *C.char, texts *cstrings, words *C.heddle_error) C.heddle_status {
		o, to := options.c(texts), texts.optional(output)
		if texts.err != nil {
			return C.HEDDLE_EINVAL
		}
		return C.heddle_sign(name, to, o, words)
	})
}

func signatureOf(path string, call func(name *C.char, texts *cstrings, out *C.heddle_signature,
	words *C.heddle_error) C.heddle_status) (Signature, error) {
	var s C.heddle_signature
	s.struct_size = C.size_t(unsafe.Sizeof(s))
	err := fileCall(path, func(name *C.char, texts *cstrings, words *C.heddle_error) C.heddle_status {
		return call(name, texts, &s, words)
	})
	if err != nil {
		return Signature{}, err
	}
	return Signature{C.GoString(&s.key_id[0]), uint64(s.sequence), s.flags&C.HEDDLE_SIGNATURE_DETACHED != 0,
		C.GoString(&s.encryption_key_id[0]), uint64(s.bytes)}, nil
}

// ReadSignature gives what a file says; nothing is verified.
func ReadSignature(path string) (Signature, error) {
	return signatureOf(path, func(name *C.char, _ *cstrings, out *C.heddle_signature, words *C.heddle_error) C.heddle_status {
		return C.heddle_signature_read(name, out, words)
	})
}

// Verify verifies a file by a trust file; "" is that of HEDDLE_TRUST. ErrDenied where it is not good.
func Verify(path, trust string) (Signature, error) {
	return signatureOf(path, func(name *C.char, texts *cstrings, out *C.heddle_signature, words *C.heddle_error) C.heddle_status {
		by := texts.optional(trust)
		if texts.err != nil {
			return C.HEDDLE_EINVAL
		}
		return C.heddle_verify(name, by, out, words)
	})
}

// Decrypt writes the content of an encrypted file; key "" is that of HEDDLE_KEY_FILE or HEDDLE_KEY.
func Decrypt(path, output, key string) error {
	return fileCall(path, func(name *C.char, texts *cstrings, words *C.heddle_error) C.heddle_status {
		to, with := texts.add(output), texts.optional(key)
		if texts.err != nil {
			return C.HEDDLE_EINVAL
		}
		return C.heddle_decrypt(name, to, with, words)
	})
}

// A KeyFunc gives the key that has an id, 32 bytes. ErrNotFound: the next source is asked. Any goroutine.
type KeyFunc func(keyID string) ([]byte, error)

var keys struct {
	sync.Mutex
	ask cgo.Handle // 0: none
}

// SetKeyFunc names the function that this process asks for the keys of encrypted files whose key no option and no key_file
// setting names; nil: none. When it returns, the function before is not called any more. ask does not call it.
func SetKeyFunc(ask KeyFunc) error {
	keys.Lock()
	defer keys.Unlock()
	words := newErr()
	defer freeErr(words)
	var handle cgo.Handle
	if ask != nil {
		handle = cgo.NewHandle(ask)
	}
	if s := C.hgo_key_callback(C.uintptr_t(handle), words); s != C.HEDDLE_OK {
		if handle != 0 {
			handle.Delete()
		}
		return failure(s, words)
	}
	if keys.ask != 0 {
		keys.ask.Delete()
	}
	keys.ask = handle
	return nil
}

func askKey(ask KeyFunc, keyID string) (key []byte, failed error) {
	defer func() {
		if p := recover(); p != nil {
			failed = &PanicError{p, debug.Stack()}
		}
	}()
	key, failed = ask(keyID)
	if failed == nil && len(key) != 32 {
		failed = invalid(fmt.Sprintf("the key %s that a KeyFunc gave has %d bytes, not 32", keyID, len(key)))
	}
	return key, failed
}

//export heddleGoKey
func heddleGoKey(ask C.uintptr_t, keyID *C.char, key *C.uchar, err *C.heddle_error) C.heddle_status {
	found, failed := askKey(cgo.Handle(ask).Value().(KeyFunc), C.GoString(keyID))
	if failed == nil {
		copy(unsafe.Slice((*byte)(unsafe.Pointer(key)), 32), found)
		return C.HEDDLE_OK
	}
	_, s, words := inWords(failed)
	setWords(err, s, words)
	return s
}
