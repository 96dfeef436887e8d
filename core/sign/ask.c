/* core/sign/ask.c: where the keys of encrypted files come from. */
#define _GNU_SOURCE /* secure_getenv */
#include <pthread.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/sign/sign.h"

static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER; /* held while the application's function runs */
static heddle_key_fn ask_fn;
static void *ask_user;

heddle_status heddle_key_callback(heddle_key_fn ask, void *user, heddle_error *err) {
  heddle_status s = heddle__sodium_start(err);
  pthread_rwlock_wrlock(&lock);
  ask_fn = s == HEDDLE_OK ? ask : NULL;
  ask_user = user;
  pthread_rwlock_unlock(&lock);
  return s;
}

static bool fits(const unsigned char key[HEDDLE__CIPHER_BYTES], const unsigned char id[8]) {
  unsigned char has[8];
  heddle__cipher_id(key, has);
  return memcmp(has, id, sizeof has) == 0;
}

/* *found: the key is there, and is the one. */
static heddle_status from_file(const char *path, const unsigned char id[8], unsigned char *key, bool *found,
                               heddle_error *err) {
  heddle_status s = heddle__key_cipher(path, key, err);
  *found = s == HEDDLE_OK && fits(key, id);
  return s;
}

static heddle_status from_function(const char *name, const unsigned char id[8], unsigned char *key, bool *found,
                                   heddle_error *err) {
  heddle_error why = {0};
  heddle_status s = HEDDLE_ENOTFOUND;
  pthread_rwlock_rdlock(&lock);
  bool asked = ask_fn != NULL;
  if (asked) s = ask_fn(ask_user, name, key, &why);
  pthread_rwlock_unlock(&lock);
  *found = asked && s == HEDDLE_OK && fits(key, id);
  if (!asked || s == HEDDLE_ENOTFOUND || s == HEDDLE_OK) return HEDDLE_OK;
  why.text[sizeof why.text - 1] = '\0';
  return heddle__fail(err, s, "the application's function of keys: %s",
                      why.text[0] != '\0' ? why.text : heddle_status_text(s));
}

static bool from_text(const char *text, const unsigned char id[8], unsigned char *key) {
  return heddle__key_in_text(text, strlen(text), HEDDLE__TEXT_CIPHER, key, HEDDLE__CIPHER_BYTES) && fits(key, id);
}

heddle_status heddle__key_ask(const char *file, const unsigned char id[8], unsigned char key[HEDDLE__CIPHER_BYTES],
                              heddle_error *err) {
  char name[20];
  bool found = false;
  heddle__key_id(id, name);
  const char *variable = secure_getenv("HEDDLE_KEY_FILE"), *text = secure_getenv("HEDDLE_KEY");
  if (file == NULL && variable != NULL && variable[0] != '\0') file = variable;
  heddle_status s = heddle__sodium_start(err);
  if (s == HEDDLE_OK && file != NULL) s = from_file(file, id, key, &found, err);
  if (s == HEDDLE_OK && !found) s = from_function(name, id, key, &found, err);
  if (s == HEDDLE_OK && !found && text != NULL) found = from_text(text, id, key);
  if (found) return HEDDLE_OK;
  sodium_memzero(key, HEDDLE__CIPHER_BYTES);
  if (s != HEDDLE_OK) return s;
  return heddle__fail(err, HEDDLE_EDENIED,
                      "it is encrypted with the key %s, which neither a key file (HEDDLE_KEY_FILE), the "
                      "application nor HEDDLE_KEY gives",
                      name);
}
