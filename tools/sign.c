/* tools/sign.c: heddle key, sign, verify and decrypt. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "heddle/heddle.h"
#include "options.h"
#include "signature.h"
#include "text.h"

/* ---- key */

static const option key_known[] = {
    {"encrypt", OPTION_FLAG, NULL, offsetof(options, new_cipher), "new: a key to encrypt with, not one to sign with"},
    OPTION_HELP,
    OPTION_END};

static int new_key(const char *path, bool cipher) {
  heddle_error err = {0};
  if (heddle_key_create(path, cipher ? HEDDLE_KEY_ENCRYPTION : HEDDLE_KEY_SIGNING, &err) != HEDDLE_OK)
    return fail("key", &err);
  if (cipher) print("wrote %s: keep it secret; with it files are encrypted and decrypted\n", path);
  else print("wrote %s, which signs: keep it secret; and %s.pub, which verifies: a trust file\n", path, path);
  return DONE;
}

static int show_public(const char *path) {
  heddle_error err = {0};
  char *text = NULL;
  if (heddle_key_public(path, &text, &err) != HEDDLE_OK) return fail("key", &err);
  print("%s\n", text);
  heddle_free(text);
  return DONE;
}

static int key(const options *o) {
  const char *what = o->models.data[0];
  bool creates = strcmp(what, "new") == 0;
  if ((!creates && strcmp(what, "public") != 0) || o->models.count != 2 || (o->new_cipher && !creates)) {
    print_error("heddle key: expected 'new FILE', 'new FILE --encrypt' or 'public FILE'\n");
    return WRONG_WORDS;
  }
  return creates ? new_key(o->models.data[1], o->new_cipher) : show_public(o->models.data[1]);
}

const command key_command = {
    "key",
    "keys that sign, verify and encrypt files of models",
    "heddle key new FILE writes a secret key to FILE and its public half to FILE.pub, which can "
    "be used as a trust\n"
    "file. heddle key new FILE --encrypt writes a key to encrypt with. heddle key public FILE "
    "prints the public half.",
    key_known,
    SUBJECT_WORDS,
    key};

/* ---- sign */

static const option sign_known[] = {
    {"key", OPTION_TEXT, "KEY", offsetof(options, sign), "the secret key that signs"},
    {"sign", OPTION_TEXT, "KEY", offsetof(options, sign), "the same as --key: the name that heddle pack has for it"},
    OPTION_SEQUENCE,
    {"encrypt", OPTION_TEXT, "KEY", offsetof(options, encrypt), "encrypts the file with this key"},
    {"detached", OPTION_FLAG, NULL, offsetof(options, detached),
     "the signature goes to FILE.sig, whatever the file is"},
    {"appended", OPTION_FLAG, NULL, offsetof(options, all), "the signature goes behind the file, whatever it is"},
    {"output", OPTION_TEXT, "FILE", offsetof(options, output),
     "the file that is written (or -o); FILE itself by default"},
    OPTION_HELP,
    OPTION_END};

static int sign(const options *o) {
  heddle_error err = {0};
  const heddle_sign_options how = {.struct_size = sizeof how,
                                   .sign = o->sign,
                                   .encrypt = o->encrypt,
                                   .sequence = o->sequence,
                                   .flags =
                                       (o->detached ? HEDDLE_SIGN_DETACHED : 0) | (o->all ? HEDDLE_SIGN_APPENDED : 0)};
  if (o->sign == NULL && o->encrypt == NULL) {
    print_error("heddle sign: with which key? --key names the one that signs, --encrypt one that encrypts\n");
    return WRONG_WORDS;
  }
  if (heddle_sign(o->model, o->output, &how, &err) != HEDDLE_OK) return fail("sign", &err);
  const char *path = o->output != NULL ? o->output : o->model;
  heddle_signature s = {.struct_size = sizeof s};
  if (heddle_signature_read(path, &s, &err) != HEDDLE_OK) return fail("sign", &err);
  print("wrote %s%s\n", path, (s.flags & HEDDLE_SIGNATURE_DETACHED) != 0 ? ".sig" : "");
  return DONE;
}

const command sign_command = {
    "sign",
    "signs and encrypts a file of a model",
    "Signs any file of a model. Libraries, packed graphs and encrypted files get the signature "
    "behind their last byte\n"
    "and stay loadable by everyone; for other files it goes to FILE.sig.",
    sign_known,
    SUBJECT_FILE,
    sign};

/* ---- verify */

static const option verify_known[] = {OPTION_TRUST, OPTION_HELP, OPTION_END};

static int verify(const options *o) {
  heddle_error err = {0};
  heddle_signature s = {.struct_size = sizeof s};
  if (heddle_verify(o->model, o->trust, &s, &err) != HEDDLE_OK) return fail("verify", &err);
  print("%s: good, signed by key %s, sequence number %" PRIu64 "\n", o->model, s.key_id, s.sequence);
  return DONE;
}

const command verify_command = {
    "verify",
    "verifies the signature of a file",
    "Verifies a file by a trust file: --trust, or HEDDLE_TRUST. Exit status 0 means that a key "
    "that is listed there\n"
    "signed these bytes.",
    verify_known,
    SUBJECT_FILE,
    verify};

/* ---- decrypt */

static const option decrypt_known[] = {
    {"output", OPTION_TEXT, "FILE", offsetof(options, output), "the file that is written (or -o)"},
    OPTION_KEY,
    OPTION_HELP,
    OPTION_END};

static int decrypt(const options *o) {
  heddle_error err = {0};
  if (o->output == NULL) {
    print_error("heddle decrypt: where to? -o needs the name of a file\n");
    return WRONG_WORDS;
  }
  if (heddle_decrypt(o->model, o->output, o->key, &err) != HEDDLE_OK) return fail("decrypt", &err);
  print("wrote %s\n", o->output);
  return DONE;
}

const command decrypt_command = {"decrypt",
                                 "the content of an encrypted file",
                                 "Writes what an encrypted file holds. The key is that of --key, HEDDLE_KEY_FILE or "
                                 "HEDDLE_KEY. A signature is not\n"
                                 "verified; heddle verify does that.",
                                 decrypt_known,
                                 SUBJECT_FILE,
                                 decrypt};
