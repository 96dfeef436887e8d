/* core/sealed.h: the one door by which files of models come in. A file that must be signed, or that is encrypted, is copied
 * once into a sealed memory file, verified and decrypted there, and read from there by a path of its own; any other file is
 * read where it lies. docs/signing.md has the bytes of signatures and encrypted files. */
#ifndef HEDDLE_CORE_SEALED_H
#define HEDDLE_CORE_SEALED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "heddle/device.h"
#include "heddle/sign.h"

/* Who may have made a file, and how it is decrypted: files, or NULL for the environment's. A trust of HEDDLE__VERIFIED is
 * that of bytes that lie in a verified file: they are taken as they are. */
typedef struct heddle__file_access {
  const char *trust;
  const char *key;
} heddle__file_access;

extern const char heddle__verified[]; /* an address, not a text */
#define HEDDLE__VERIFIED heddle__verified

enum { HEDDLE__SIGNATURE_BYTES = 128, HEDDLE__PUBLIC_BYTES = 32 };

/* A signature: of a file that ends with one, or of FILE.sig. */
typedef struct heddle__signature {
  uint64_t bytes, sequence;
  unsigned char key[HEDDLE__PUBLIC_BYTES];
  unsigned char raw[HEDDLE__SIGNATURE_BYTES];
  bool is_detached;
} heddle__signature;

typedef struct heddle__sealed {
  const char *name; /* as it was asked for; borrowed */
  const char *use;  /* what is to be opened: the name, or own */
  int file;         /* of the memory file; -1: the file is used where it lies */
  bool is_verified, is_signed;
  heddle__signature signature; /* is_signed */
  char own[40];
} heddle__sealed;

/* Opens a file of at most max_bytes. HEDDLE_EIO, HEDDLE_ELIMIT, HEDDLE_ENOMEM; HEDDLE_EDENIED where trust refuses it or no
 * key decrypts it; HEDDLE_EUNSUPPORTED where that needs a build with HEDDLE_SODIUM. A file that is neither to be verified nor
 * encrypted is HEDDLE_OK even where it cannot be read: its reader reports that. After HEDDLE_OK it is closed; out points
 * into itself and is not moved. */
heddle_status heddle__sealed_open(const char *path, const heddle__file_access *access, uint64_t max_bytes,
                                  heddle__sealed *out, heddle_error *err);

/* The same for bytes in memory; *is_needed: whether they have to be, else out is not filled. */
heddle_status heddle__sealed_bytes(const void *data, size_t bytes, const char *name, const heddle__file_access *access,
                                   bool *is_needed, heddle__sealed *out, heddle_error *err);

/* Verifies a file without decrypting it; after HEDDLE_OK it is closed. */
heddle_status heddle__sealed_verify(const char *path, const char *trust, heddle__sealed *out, heddle_error *err);
void heddle__sealed_close(heddle__sealed *s);

/* The bytes of a sealed copy (file is not -1), as memory that only its owner reads; heddle__sealed_unmap follows. */
heddle_status heddle__sealed_map(const heddle__sealed *s, const void **data, size_t *bytes, heddle_error *err);
void heddle__sealed_unmap(const void *data, size_t bytes);

/* Puts the file's name before an error of a reader that knows only s->use. */
heddle_status heddle__sealed_failed(const heddle__sealed *s, heddle_status status, heddle_error *err);

/* The trust file that counts: given, else that of HEDDLE_TRUST; NULL: none. "off" lifts no HEDDLE_TRUST. */
const char *heddle__trust_file(const char *given);

/* Whether a call may name this as its trust file: it cannot turn trust off. HEDDLE_EINVAL. */
heddle_status heddle__trust_given(const char *trust, heddle_error *err);

/* What counts of a call and its context: what the call names, else the settings trust and key_file. */
heddle__file_access heddle__access_of(heddle_context *ctx, const char *trust, const char *key);

/* Whether a signature that was verified by one trust file is accepted by another. HEDDLE_EDENIED. */
heddle_status heddle__trust_accepts(const char *trust, const heddle__signature *signature, heddle_error *err);

/* ---- the bytes */

/* The signature at a file's end; false where there is none. */
bool heddle__signature_at_end(int file, uint64_t file_bytes, heddle__signature *out);

/* The bytes of a file without a signature at its end. */
uint64_t heddle__unsigned_bytes(int file, uint64_t file_bytes);

/* The signature of a path: at its end, or in FILE.sig; false where it has none. */
bool heddle__signature_of(int file, uint64_t file_bytes, const char *path, heddle__signature *out);

void heddle__key_id(const unsigned char key[8], char out[20]);

static inline uint64_t heddle__number_at(const unsigned char *at, unsigned n) {
  uint64_t value = 0;
  for (unsigned i = 0; i < n; i++) value |= (uint64_t)at[i] << (8 * i);
  return value;
}

static inline void heddle__number_to(unsigned char *at, unsigned n, uint64_t value) {
  for (unsigned i = 0; i < n; i++) at[i] = (unsigned char)(value >> (8 * i));
}

/* What an encrypted file says that it holds, at HEDDLE__STREAM_KIND. */
enum {
  HEDDLE__HOLDS_OTHER,
  HEDDLE__HOLDS_LIBRARY,
  HEDDLE__HOLDS_PACKED,
  HEDDLE__STREAM_ID = 24,
  HEDDLE__STREAM_KIND = 32
};

/* The flags and the key's id that the first 40 bytes of an encrypted file say. */
void heddle__encrypted_says(const unsigned char head[40], heddle_signature *out);

/* Whether a file of this beginning is encrypted; a shared library. */
bool heddle__is_encrypted(const unsigned char *head, size_t n);
bool heddle__is_elf(const unsigned char *head, size_t n);

/* ---- memory files (core/memory_file.c) */

/* Calls take with bytes [0, bytes) of a file, piece by piece, until it fails. HEDDLE_EIO where the file is shorter. */
typedef heddle_status (*heddle__take_piece)(void *user, const void *data, size_t n, heddle_error *err);
heddle_status heddle__each_piece(int file, uint64_t bytes, const char *name, heddle__take_piece take, void *user,
                                 heddle_error *err);

/* A new memory file that nobody else has; runs: its code is to be run. HEDDLE_EUNSUPPORTED where the system has none,
 * HEDDLE_EDENIED where it lets no memory file be run. */
heddle_status heddle__memory_file(const char *name, bool runs, int *out, heddle_error *err);
heddle_status heddle__memory_put(int file, const void *data, size_t bytes, heddle_error *err);

/* No byte of it can be changed from now on, by no process. */
heddle_status heddle__memory_seal(int file, heddle_error *err);

/* Copies bytes [0, bytes) of a file into a sealed memory file. */
heddle_status heddle__memory_copy(int from, uint64_t bytes, const char *name, bool runs, int *out, heddle_error *err);

#endif
