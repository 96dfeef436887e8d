/* core/sign/sign.h: what libsodium does for core/sealed.c and the public functions of heddle/sign.h. Secrets are erased
 * when they are done with, and stand in no error. */
#ifndef HEDDLE_CORE_SIGN_H
#define HEDDLE_CORE_SIGN_H

#include "core/parts.h"
#include "core/sealed.h"

enum { HEDDLE__SECRET_BYTES = 64, HEDDLE__CIPHER_BYTES = 32 };

/* A signature: the bytes before HEDDLE__SIGNATURE_HEAD are signed too. */
enum { HEDDLE__SIGNATURE_VERSION = 1, HEDDLE__SIGNATURE_ED25519PH = 1, HEDDLE__SIGNATURE_HEAD = 64 };

/* ---- seal.c */

/* Verifies a sealed copy of content bytes by a trust file; s->is_signed. HEDDLE_EDENIED. */
heddle_status heddle__verify_sealed(heddle__sealed *s, uint64_t content, const char *trust, heddle_error *err);

/* Replaces a sealed copy by a sealed one of what is decrypted. HEDDLE_EDENIED, HEDDLE_EFORMAT. */
heddle_status heddle__decrypt_sealed(heddle__sealed *s, uint64_t content, const char *key_file, heddle_error *err);

/* ---- key.c: keys and the texts that hold them */

heddle_status heddle__sodium_start(heddle_error *err);

/* The three kinds of text. */
#define HEDDLE__TEXT_PUBLIC "heddle-public-1"
#define HEDDLE__TEXT_SECRET "heddle-secret-1"
#define HEDDLE__TEXT_CIPHER "heddle-encrypt-1"

/* The key behind a word of a text of n bytes, in whole lines of which '#' begins a comment; false where there is none. */
bool heddle__key_in_text(const char *text, size_t n, const char *word, unsigned char *key, size_t bytes);

/* A secret signing key; an encryption key. The file is the owner's alone, else HEDDLE_EDENIED. */
heddle_status heddle__key_secret(const char *path, unsigned char key[HEDDLE__SECRET_BYTES], heddle_error *err);
heddle_status heddle__key_cipher(const char *path, unsigned char key[HEDDLE__CIPHER_BYTES], heddle_error *err);

/* A public key as its base64 text of n letters. */
bool heddle__public_of_text(const char *text, size_t n, unsigned char key[HEDDLE__PUBLIC_BYTES]);

/* What an encrypted file says of its key, by which no key can be found. */
void heddle__cipher_id(const unsigned char key[HEDDLE__CIPHER_BYTES], unsigned char id[8]);

/* ask.c: the encryption key of an id, from where heddle_key_callback says. HEDDLE_EDENIED: there is none. */
heddle_status heddle__key_ask(const char *file, const unsigned char id[8], unsigned char key[HEDDLE__CIPHER_BYTES],
                              heddle_error *err);

/* ---- trust.c */

/* Whether the trust file accepts a key and a sequence number; none of s NULL, which is not signed. HEDDLE_EDENIED;
 * HEDDLE_EIO and HEDDLE_EFORMAT for the trust file itself. */
heddle_status heddle__trust_check(const char *trust, const heddle__signature *s, heddle_error *err);

/* ---- stream.c: encrypted files */

enum { HEDDLE__STREAM_HEAD = 64, HEDDLE__STREAM_CHUNK = 1 << 16 };

/* Encrypts all of a file into another at its place; holds: HEDDLE__HOLDS_*. */
heddle_status heddle__encrypt(int from, uint64_t bytes, int holds, int to,
                              const unsigned char key[HEDDLE__CIPHER_BYTES], heddle_error *err);

/* Decrypts data, which holds all of an encrypted file, into a new memory file. */
heddle_status heddle__decrypt(const unsigned char *data, uint64_t bytes, const char *name, const char *key_file,
                              int *out, heddle_error *err);

#endif
