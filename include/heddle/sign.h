/* heddle/sign.h: files of models that are signed (Ed25519) and encrypted (XChaCha20-Poly1305): keys, signing, checking.
 * docs/signing.md describes the files and what they protect against. Needs a build with HEDDLE_SODIUM; without it every
 * function here but heddle_signature_read returns HEDDLE_EUNSUPPORTED. */
#ifndef HEDDLE_SIGN_H
#define HEDDLE_SIGN_H

#include "heddle/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The first eight bytes of an encrypted file, and of a signature. */
#define HEDDLE_ENCRYPTED_MAGIC "\211HDLEN\r\n"
#define HEDDLE_SIGNATURE_MAGIC "\211HDLSG\r\n"

enum {
  HEDDLE_KEY_SIGNING = 1,   /* an Ed25519 pair; the public half goes to PATH.pub, which is a trust file too */
  HEDDLE_KEY_ENCRYPTION = 2 /* a secret of 32 bytes for both sides */
};

/* Creates a key of a kind in a new file that only its owner may read. HEDDLE_EIO, also where the file is there already;
 * HEDDLE_EINVAL for another kind. Any thread; blocks. */
HEDDLE_API heddle_status heddle_key_create(const char *path, uint32_t kind, heddle_error *err);

/* The public half of a signing key as text, "heddle-public-1 BASE64"; path may be the secret key or the public one. *out
 * is freed with heddle_free. HEDDLE_EFORMAT; HEDDLE_EDENIED where others may read the secret key. Any thread; blocks. */
HEDDLE_API heddle_status heddle_key_public(const char *path, char **out, heddle_error *err);

/* heddle_sign_options.flags */
#define HEDDLE_SIGN_DETACHED UINT32_C(1) /* the signature goes to FILE.sig, and the file stays as it is */
#define HEDDLE_SIGN_APPENDED UINT32_C(2) /* the signature goes behind the file's last byte */

/* struct_size is sizeof; sign or encrypt is given, or both. */
typedef struct heddle_sign_options {
  size_t struct_size;
  const char *sign;    /* path of a secret signing key; NULL: the file is not signed */
  const char *encrypt; /* path of an encryption key; NULL: the file is not encrypted */
  uint64_t sequence;   /* is signed too; a trust file may demand a smallest one */
  uint32_t flags;      /* 0: appended to libraries, packed graphs and encrypted files, detached for others */
} heddle_sign_options;

/* Encrypts and signs a file. out_path NULL: the file itself. A signature that the file has is replaced. The file appears
 * under its name when it is complete. HEDDLE_EIO, HEDDLE_EFORMAT, HEDDLE_EINVAL; HEDDLE_EDENIED where others may read a
 * key. Any thread; blocks. */
HEDDLE_API heddle_status heddle_sign(const char *path, const char *out_path, const heddle_sign_options *options,
                                     heddle_error *err);

/* heddle_signature.flags */
#define HEDDLE_SIGNATURE_SIGNED UINT32_C(1)
#define HEDDLE_SIGNATURE_DETACHED UINT32_C(2) /* in FILE.sig */
#define HEDDLE_SIGNATURE_ENCRYPTED UINT32_C(4)
#define HEDDLE_SIGNATURE_LIBRARY UINT32_C(8) /* the encrypted file holds a shared library */
#define HEDDLE_SIGNATURE_PACKED UINT32_C(16) /* the encrypted file holds a packed graph */

typedef struct heddle_signature {
  size_t struct_size;
  uint64_t sequence;
  uint64_t bytes; /* of the file, without a signature behind it */
  uint32_t flags;
  char key_id[20];            /* of the key that signed, 16 hexadecimal digits; "": not signed */
  char encryption_key_id[20]; /* of the encryption key; "": not encrypted */
  char reserved[4];
} heddle_signature;

/* What a file says of its signature and its encryption; nothing is verified. Set out->struct_size. HEDDLE_EIO. Any
 * thread; blocks. */
HEDDLE_API heddle_status heddle_signature_read(const char *path, heddle_signature *out, heddle_error *err);

/* Verifies a file by a trust file; NULL: that of HEDDLE_TRUST. out, which may be NULL, is what the signature says.
 * HEDDLE_EDENIED: not signed, changed, or signed by a key that is unknown or revoked, or with a sequence number that is
 * too small. HEDDLE_EINVAL: no trust file is named; HEDDLE_EFORMAT: the trust file is malformed. Any thread; blocks. */
HEDDLE_API heddle_status heddle_verify(const char *path, const char *trust, heddle_signature *out, heddle_error *err);

/* Writes the content of an encrypted file; a signature is not verified. key: the file of its key; NULL: as
 * heddle_key_callback describes. HEDDLE_EDENIED: it is not encrypted with this key, or was changed. Any thread; blocks. */
HEDDLE_API heddle_status heddle_decrypt(const char *path, const char *out_path, const char *key, heddle_error *err);

/* Gives the key that has an id, 32 bytes, which are erased after use; HEDDLE_ENOTFOUND: the next source is tried. May be
 * called by several threads. */
typedef heddle_status (*heddle_key_fn)(void *user, const char *key_id, unsigned char key[32], heddle_error *err);

/* Sets the function that gives this process the keys of encrypted files; NULL: none. The key of a file is looked for
 * in: the file that the call names (key of heddle_model_options, heddle_read_limits), else that of the setting
 * key_file (HEDDLE_KEY_FILE); this function; the variable HEDDLE_KEY, which holds the text of an encryption key. When
 * this returns, the function before is not called any more. ask does not call it. Any thread; waits for calls of ask. */
HEDDLE_API heddle_status heddle_key_callback(heddle_key_fn ask, void *user, heddle_error *err);

#ifdef __cplusplus
}
#endif

#endif
