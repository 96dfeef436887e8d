/* Signed and encrypted files: every changed bit, every cut and every moved chunk is refused; who signed, and which release;
 * what was verified is what is used. */
#define _GNU_SOURCE /* mkdtemp */
#include "cases.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "core/alloc.h"
#include "core/parts.h"
#include "heddle/heddle.h"

static char folder[64];

/* A path in the test's own folder; four may be in use at once. */
static const char *at(const char *name) {
  static char room[4][160];
  static unsigned next;
  char *out = room[next++ % 4];
  snprintf(out, sizeof room[0], "%s/%s", folder, name);
  return out;
}

static void write_bytes(const char *name, const void *data, size_t n) {
  FILE *f = fopen(at(name), "wb");
  assert_non_null(f);
  assert_int_equal(fwrite(data, 1, n, f), n);
  assert_int_equal(fclose(f), 0);
}

static size_t read_bytes(const char *name, unsigned char *out, size_t room) {
  FILE *f = fopen(at(name), "rb");
  assert_non_null(f);
  size_t n = fread(out, 1, room, f);
  fclose(f);
  return n;
}

static void good(heddle_status s, const heddle_error *err) {
  if (s != HEDDLE_OK) fail_msg("%s: %s", heddle_status_name(s), err->text);
}

static void refused(heddle_status s, heddle_status want, const char *words, const heddle_error *err) {
  if (s != want || strstr(err->text, words) == NULL)
    fail_msg("%s: %s; expected %s with '%s'", heddle_status_name(s), err->text, heddle_status_name(want), words);
}

/* A folder with the keys a, b (signing) and c, d (encryption), and trust, which lists a. */
static void begin(void) {
  heddle_error err;
  if (!HEDDLE_HAS_SODIUM) skip();
  snprintf(folder, sizeof folder, "/tmp/heddle-sign-XXXXXX");
  assert_non_null(mkdtemp(folder));
  for (int i = 0; i < 4; i++) {
    const char name[2] = {"abcd"[i], 0};
    good(heddle_key_create(at(name), i < 2 ? HEDDLE_KEY_SIGNING : HEDDLE_KEY_ENCRYPTION, &err), &err);
  }
}

static void end(void) {
  char command[100];
  snprintf(command, sizeof command, "rm -rf %s", folder);
  assert_int_equal(system(command), 0);
  assert_int_equal(heddle__alloc_live(), 0);
}

static void sign_as(const char *name, const char *to, const char *key, const char *cipher, uint64_t sequence,
                    uint32_t flags) {
  heddle_error err;
  const heddle_sign_options o = {sizeof o, key != NULL ? at(key) : NULL, cipher != NULL ? at(cipher) : NULL, sequence,
                                 flags};
  char from[160];
  snprintf(from, sizeof from, "%s", at(name));
  good(heddle_sign(from, to != NULL ? at(to) : NULL, &o, &err), &err);
}

/* A model of one addition, with a comment that makes it n bytes long. */
static size_t model(char *out, size_t n) {
  static const char text[] =
      "{\"heddle\":{\"version\":1,\"opset\":17},\"nodes\":[{\"op\":\"null\",\"name\":\"x\",\"inputs\":[]},"
      "{\"op\":\"Add\",\"name\":\"y\",\"inputs\":[[0,0,0],[0,0,0]]}],\"arg_nodes\":[0],\"heads\":[[1,0,0]],\"node_row_"
      "ptr\":[0,1,2],"
      "\"attrs\":{\"shape\":[\"list_shape\",[[2],[2]]],\"dltype\":[\"list_str\",[\"float32\",\"float32\"]]}}";
  size_t has = sizeof text - 1;
  assert_true(has <= n);
  memcpy(out, text, has);
  memset(out + has, ' ', n - has);
  return n;
}

static heddle_status parse(const void *data, size_t n, const char *trust, const char *key, heddle_error *err) {
  const heddle_read_limits limits = {.struct_size = sizeof limits, .trust = trust, .key = key};
  heddle_graph *g = NULL;
  heddle_status s = heddle_graph_parse(data, n, "the model", &limits, &g, err);
  assert_true((s == HEDDLE_OK) == (g != NULL));
  if (s != HEDDLE_OK) assert_true(err->status == s && err->text[0] != '\0');
  heddle_graph_release(g);
  return s;
}

static heddle_status load(const char *name, const char *trust, const char *key, heddle_error *err) {
  char path[160];
  const heddle_read_limits limits = {.struct_size = sizeof limits, .trust = trust, .key = key};
  heddle_graph *g = NULL;
  snprintf(path, sizeof path, "%s", at(name));
  heddle_status s = heddle_graph_load(path, &limits, &g, err);
  heddle_graph_release(g);
  return s;
}

enum { WHOLE = 1024, SIGNATURE = 128 };

static void refuses_every_changed_bit(void **state) {
  (void)state;
  unsigned char file[WHOLE + 1];
  char trust[160], key[160];
  heddle_error err = {0};
  begin();
  snprintf(trust, sizeof trust, "%s", at("a.pub"));
  snprintf(key, sizeof key, "%s", at("c"));
  for (int encrypted = 0; encrypted < 2; encrypted++) {
    char text[WHOLE];
    size_t n = model(text, encrypted ? WHOLE - SIGNATURE - 64 - 17 : WHOLE - SIGNATURE);
    write_bytes("m.json", text, n);
    sign_as("m.json", NULL, "a", encrypted ? "c" : NULL, 3, HEDDLE_SIGN_APPENDED);
    assert_int_equal(read_bytes("m.json", file, sizeof file), WHOLE);
    good(parse(file, WHOLE, trust, key, &err), &err);
    for (size_t bit = 0; bit < WHOLE * 8; bit++) {
      file[bit / 8] ^= (unsigned char)(1U << bit % 8);
      if (parse(file, WHOLE, trust, key, &err) != HEDDLE_EDENIED)
        fail_msg("bit %zu: %s", bit, heddle_status_name(err.status));
      file[bit / 8] ^= (unsigned char)(1U << bit % 8);
    }
    good(parse(file, WHOLE, trust, key, &err), &err);
  }
  end();
}

static void refuses_every_length(void **state) {
  (void)state;
  unsigned char file[WHOLE + SIGNATURE * 2] = {0};
  char text[WHOLE], trust[160];
  heddle_error err = {0};
  begin();
  snprintf(trust, sizeof trust, "%s", at("a.pub"));
  write_bytes("m.json", text, model(text, WHOLE - SIGNATURE));
  sign_as("m.json", NULL, "a", NULL, 0, HEDDLE_SIGN_APPENDED);
  assert_int_equal(read_bytes("m.json", file, sizeof file), WHOLE);
  for (size_t n = 0; n < WHOLE + SIGNATURE; n++)
    if (n != WHOLE) assert_int_equal(parse(file, n, trust, NULL, &err), HEDDLE_EDENIED);
  memcpy(file + WHOLE, file + WHOLE - SIGNATURE, SIGNATURE); /* the signature twice */
  assert_int_equal(parse(file, WHOLE + SIGNATURE, trust, NULL, &err), HEDDLE_EDENIED);
  end();
}

/* Parameters of three chunks and a part. */
enum { CHUNK = 65536, FLOATS = 3 * CHUNK / 4 + 100, ROOM = 4 * CHUNK + 1000 };

static void make_params(const char *name) {
  static float values[FLOATS];
  const int64_t shape[1] = {FLOATS};
  heddle_tensor *t = NULL;
  heddle_params *p = NULL;
  heddle_error err;
  const char *names[1] = {"w"};
  for (int i = 0; i < FLOATS; i++) values[i] = (float)i;
  good(heddle_tensor_wrap(values, (heddle_dtype){HEDDLE_DTYPE_FLOAT, 32, 1}, shape, 1, NULL, NULL, NULL, &t, &err),
       &err);
  good(heddle_params_create(names, &t, 1, &p, &err), &err);
  good(heddle_params_save(p, at(name), &err), &err);
  heddle_params_release(p);
  heddle_tensor_release(t);
}

static heddle_status load_params(const unsigned char *data, size_t n, const char *key, heddle_error *err) {
  const heddle_read_limits limits = {.struct_size = sizeof limits, .key = key};
  heddle_params *p = NULL;
  heddle_status s = heddle_params_parse(data, n, "the params", &limits, &p, err);
  heddle_params_release(p);
  return s;
}

static void refuses_moved_chunks(void **state) {
  (void)state;
  static unsigned char file[ROOM], other[ROOM];
  const size_t head = 64, part = CHUNK + 17;
  char key[160];
  heddle_error err = {0};
  begin();
  make_params("w.params");
  sign_as("w.params", "w.bin", NULL, "c", 0, 0);
  size_t n = read_bytes("w.bin", file, ROOM);
  snprintf(key, sizeof key, "%s", at("c"));
  good(load_params(file, n, key, &err), &err);
  memcpy(other, file, n); /* the first two, exchanged */
  memcpy(other + head, file + head + part, part);
  memcpy(other + head + part, file + head, part);
  refused(load_params(other, n, key, &err), HEDDLE_EDENIED, "chunk 0", &err);
  memcpy(other, file, n); /* the second, twice */
  memcpy(other + head + 2 * part, file + head + part, part);
  refused(load_params(other, n, key, &err), HEDDLE_EDENIED, "chunk 2", &err);
  memcpy(other, file, head + part); /* without the second */
  memcpy(other + head + part, file + head + 2 * part, n - head - 2 * part);
  refused(load_params(other, n - part, key, &err), HEDDLE_EDENIED, "cut off or too long", &err);
  uint64_t plain = 0; /* and with a head that says so */
  memcpy(&plain, other + 16, 8);
  plain -= CHUNK;
  memcpy(other + 16, &plain, 8);
  refused(load_params(other, n - part, key, &err), HEDDLE_EDENIED, "chunk 0", &err);
  plain = 3 * CHUNK; /* without the last, and a head that says so */
  memcpy(other, file, n);
  memcpy(other + 16, &plain, 8);
  refused(load_params(other, head + 3 * part, key, &err), HEDDLE_EDENIED, "chunk 0", &err);
  for (size_t cut = 0; cut < n; cut += cut % 4099 == 0 ? 1 : 97)
    if (load_params(file, cut, key, &err) == HEDDLE_OK) fail_msg("cut at %zu", cut);
  memset(other + 12, 0, 4); /* chunks of no bytes, of too many */
  refused(load_params(other, n, key, &err), HEDDLE_EFORMAT, "chunks of 0 bytes", &err);
  memset(other + 12, 0xff, 4);
  refused(load_params(other, n, key, &err), HEDDLE_EFORMAT, "chunks of", &err);
  snprintf(key, sizeof key, "%s", at("d"));
  refused(load_params(file, n, key, &err), HEDDLE_EDENIED, "encrypted with the key", &err);
  end();
}

static void write_trust(const char *name, const char *format, const char *of) {
  char text[600], *line = NULL;
  heddle_error err;
  good(heddle_key_public(at(of), &line, &err), &err);
  snprintf(text, sizeof text, format, line);
  write_bytes(name, text, strlen(text));
  heddle_free(line);
}

static void who_signed_and_which_release(void **state) {
  (void)state;
  char text[WHOLE], trust[160];
  heddle_error err = {0};
  heddle_signature says = {.struct_size = sizeof says};
  begin();
  snprintf(trust, sizeof trust, "%s", at("trust"));
  write_bytes("m.json", text, model(text, 600));
  refused(load("m.json", trust, NULL, &err), HEDDLE_EIO, "trust file", &err);
  write_trust("trust", "%s", "a");
  refused(load("m.json", trust, NULL, &err), HEDDLE_EDENIED, "not signed", &err);
  assert_int_equal(unlink(trust), 0);
  sign_as("m.json", NULL, "a", NULL, 5, 0);
  good(heddle_signature_read(at("m.json"), &says, &err), &err);
  assert_int_equal(says.flags, HEDDLE_SIGNATURE_SIGNED | HEDDLE_SIGNATURE_DETACHED);
  assert_true(says.sequence == 5 && says.bytes == 600 && strlen(says.key_id) == 16);
  refused(load("m.json", trust, NULL, &err), HEDDLE_EIO, "trust file", &err);
  write_trust("trust", "# keys\n\n  %s  minimum=5 # ours\n", "a.pub");
  good(load("m.json", trust, NULL, &err), &err);
  good(heddle_verify(at("m.json"), trust, NULL, &err), &err);
  write_trust("trust", "%s minimum=6\n", "a");
  refused(load("m.json", trust, NULL, &err), HEDDLE_EDENIED, "sequence number is 5", &err);
  sign_as("m.json", NULL, "a", NULL, 6, 0);
  good(load("m.json", trust, NULL, &err), &err);
  write_trust("trust", "%s\n", "b");
  refused(load("m.json", trust, NULL, &err), HEDDLE_EDENIED, "does not list", &err);
  char both[300];
  snprintf(both, sizeof both, "%%s\nrevoked %s\n", says.key_id);
  write_trust("trust", both, "a");
  refused(load("m.json", trust, NULL, &err), HEDDLE_EDENIED, "revoked", &err);
  write_trust("trust", "revoked %s", "a");
  refused(load("m.json", trust, NULL, &err), HEDDLE_EDENIED, "revoked", &err);
  static const char *const bad[] = {
      "%s minimum=x", "%s minimum=99999999999999999999", "%s more words",    "%s minimum=1 2",      "%.30s",
      "revoked",      "heddle-secret-1 x\n%s",           "revoked 12\n%s\n", "revoked %s minimum=1"};
  for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
    write_trust("trust", bad[i], "a");
    refused(load("m.json", trust, NULL, &err), HEDDLE_EFORMAT, "line", &err);
  }
  write_trust("trust", "%s", "a");
  assert_int_equal(chmod(trust, 0666), 0);
  refused(load("m.json", trust, NULL, &err), HEDDLE_EDENIED, "written by everyone", &err);
  assert_int_equal(chmod(trust, 0644), 0);
  good(load("m.json", trust, NULL, &err), &err);
  refused(load("m.json", "", NULL, &err), HEDDLE_EINVAL, "trust", &err);
  refused(load("m.json", "off", NULL, &err), HEDDLE_EINVAL, "trust", &err);
  assert_int_equal(unlink(at("m.json.sig")), 0);
  refused(load("m.json", trust, NULL, &err), HEDDLE_EDENIED, "not signed", &err);
  end();
}

static void keys_stay_secret(void **state) {
  (void)state;
  char text[WHOLE], *line = NULL;
  unsigned char raw[400];
  struct stat info;
  heddle_error err = {0};
  heddle_sign_options o = {.struct_size = sizeof o};
  begin();
  write_bytes("m.json", text, model(text, 600));
  assert_int_equal(stat(at("a"), &info), 0);
  assert_int_equal(info.st_mode & 0777, 0600);
  size_t n = read_bytes("a", raw, sizeof raw - 1);
  raw[n] = '\0';
  const char *secret = strstr((char *)raw, "heddle-secret-1 ") + 16;
  refused(heddle_key_create(at("a"), HEDDLE_KEY_SIGNING, &err), HEDDLE_EIO, "never written over", &err);
  refused(heddle_key_create(at("e"), 7, &err), HEDDLE_EINVAL, "kind 7", &err);
  assert_int_equal(chmod(at("a"), 0640), 0);
  o.sign = at("a");
  refused(heddle_sign(at("m.json"), NULL, &o, &err), HEDDLE_EDENIED, "mode 640", &err);
  assert_null(strstr(err.text, "heddle-secret-1"));
  assert_int_equal(chmod(at("a"), 0600), 0);
  o.sign = at("c"); /* of another kind */
  refused(heddle_sign(at("m.json"), NULL, &o, &err), HEDDLE_EFORMAT, "no secret signing key", &err);
  refused(heddle_key_public(at("c"), &line, &err), HEDDLE_EFORMAT, "no secret signing key", &err);
  n = (size_t)(strchr(secret, '\n') - secret); /* cut off */
  write_bytes("short", raw, (size_t)((unsigned char *)secret - raw) + n - 8);
  assert_int_equal(chmod(at("short"), 0600), 0);
  o.sign = at("short");
  refused(heddle_sign(at("m.json"), NULL, &o, &err), HEDDLE_EFORMAT, "no secret signing key", &err);
  assert_null(strstr(err.text, "AAAA"));
  o.sign = NULL;
  refused(heddle_sign(at("m.json"), NULL, &o, &err), HEDDLE_EINVAL, "neither", &err);
  o.encrypt = at("c");
  o.sequence = 1;
  refused(heddle_sign(at("m.json"), NULL, &o, &err), HEDDLE_EINVAL, "sequence", &err);
  assert_int_not_equal(access(at("m.json.sig"), F_OK), 0);
  end();
}

/* By name, so that none is needed in a call. */
static heddle_status give_key(void *user, const char *id, unsigned char key[32], heddle_error *err) {
  (void)err;
  char text[400];
  FILE *f = fopen(user, "re");
  if (f == NULL) return HEDDLE_ENOTFOUND;
  size_t n = fread(text, 1, sizeof text - 1, f);
  fclose(f);
  text[n] = '\0';
  if (strstr(text, id) == NULL) return HEDDLE_ENOTFOUND;
  const char *from = strstr(text, "heddle-encrypt-1 ") + 17;
  static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  unsigned bits = 0, held = 0, at_byte = 0;
  for (; at_byte < 32 && *from != '\n'; from++) {
    const char *letter = strchr(letters, *from);
    bits = bits << 6 | (unsigned)(letter - letters);
    held += 6;
    if (held < 8) continue;
    held -= 8;
    key[at_byte++] = (unsigned char)(bits >> held);
  }
  return HEDDLE_OK;
}

static void keys_come_from_everywhere(void **state) {
  (void)state;
  char text[WHOLE], words[400], file[160];
  heddle_error err = {0};
  begin();
  write_bytes("m.json", text, model(text, 600));
  sign_as("m.json", "e.json", NULL, "c", 0, 0);
  snprintf(file, sizeof file, "%s", at("c"));
  refused(load("e.json", NULL, NULL, &err), HEDDLE_EDENIED, "HEDDLE_KEY", &err);
  good(load("e.json", NULL, file, &err), &err);
  good(heddle_key_callback(give_key, file, &err), &err);
  good(load("e.json", NULL, NULL, &err), &err);
  good(heddle_key_callback(NULL, NULL, &err), &err);
  assert_int_equal(setenv("HEDDLE_KEY_FILE", file, 1), 0);
  good(load("e.json", NULL, NULL, &err), &err);
  assert_int_equal(setenv("HEDDLE_KEY_FILE", at("d"), 1), 0);
  refused(load("e.json", NULL, NULL, &err), HEDDLE_EDENIED, "HEDDLE_KEY", &err);
  size_t n = read_bytes("c", (unsigned char *)words, sizeof words - 1);
  words[n] = '\0';
  assert_int_equal(setenv("HEDDLE_KEY", strstr(words, "heddle-encrypt-1"), 1), 0);
  good(load("e.json", NULL, NULL, &err), &err);
  heddle_context *ctx = NULL; /* no setting is the key */
  const heddle_setting none[] = {{"plugins", "off"}, {"config", "off"}};
  good(heddle_context_create(none, 2, NULL, NULL, &ctx, &err), &err);
  for (size_t i = 0; heddle_context_setting_key(ctx, i) != NULL; i++)
    assert_string_not_equal(heddle_context_setting_key(ctx, i), "key");
  heddle_context_release(ctx);
  assert_int_equal(unsetenv("HEDDLE_KEY"), 0);
  assert_int_equal(unsetenv("HEDDLE_KEY_FILE"), 0);
  good(heddle_decrypt(at("e.json"), at("back.json"), file, &err), &err);
  unsigned char back[WHOLE];
  assert_int_equal(read_bytes("back.json", back, sizeof back), 600);
  assert_memory_equal(back, text, 600);
  refused(heddle_decrypt(at("m.json"), at("back.json"), file, &err), HEDDLE_EINVAL, "not encrypted", &err);
  end();
}

/* A packed graph with parameters; *first is their first byte in memory. */
static heddle_params *load_packed(const char *trust, const unsigned char **first) {
  const heddle_read_limits limits = {.struct_size = sizeof limits, .trust = trust};
  heddle_params *p = NULL;
  heddle_tensor *t = NULL;
  heddle_error err;
  good(heddle_params_load(at("net.heddle"), &limits, &p, &err), &err);
  good(heddle_params_tensor(p, 0, &t, &err), &err);
  *first = heddle_tensor_data(t);
  heddle_tensor_release(t);
  return p;
}

/* Bytes of the file that are used where they lie follow the file; those of a verified one do not. */
static void what_was_verified_is_used(void **state) {
  (void)state;
  char text[WHOLE], trust[160], graph[160];
  heddle_error err = {0};
  begin();
  snprintf(trust, sizeof trust, "%s", at("a.pub"));
  snprintf(graph, sizeof graph, "%s", at("m.json"));
  write_bytes("m.json", text, model(text, 600));
  make_params("w.params");
  char params[160];
  snprintf(params, sizeof params, "%s", at("w.params"));
  const heddle_pack_model m = {.struct_size = sizeof m, .graph_path = graph, .params_path = params};
  const heddle_pack_model *list[1] = {&m};
  heddle_sign_options how = {.struct_size = sizeof how, .sign = at("a"), .sequence = 2};
  const heddle_pack_options o = {.struct_size = sizeof o, .models = list, .n_models = 1, .sign = &how};
  good(heddle_pack(at("net.heddle"), &o, &err), &err);
  heddle_signature says = {.struct_size = sizeof says};
  good(heddle_verify(at("net.heddle"), trust, &says, &err), &err);
  assert_int_equal(says.flags, HEDDLE_SIGNATURE_SIGNED);
  const unsigned char *plain, *sealed;
  heddle_params *a = load_packed(NULL, &plain), *b = load_packed(trust, &sealed);
  unsigned char before[64];
  memcpy(before, sealed + 100000, sizeof before);
  assert_memory_equal(plain + 100000, before, sizeof before);
  int file = open(at("net.heddle"), O_RDWR);
  assert_true(file >= 0);
  struct stat info;
  assert_int_equal(fstat(file, &info), 0);
  static unsigned char other[1 << 20];
  memset(other, 0x5a, sizeof other);
  assert_true((size_t)info.st_size < sizeof other);
  assert_int_equal(pwrite(file, other, (size_t)info.st_size, 0), info.st_size);
  close(file);
  assert_memory_equal(sealed + 100000, before, sizeof before);
  assert_memory_equal(plain + 100000, other, sizeof before); /* mapped, as files without trust are */
  heddle_params_release(a);
  heddle_params_release(b);
  refused(heddle_verify(at("net.heddle"), trust, NULL, &err), HEDDLE_EDENIED, "not signed", &err);
  end();
}

/* A signature changes nothing for those who set no trust; sequence numbers and forms can be changed. */
static void signed_files_stay_loadable(void **state) {
  (void)state;
  char text[WHOLE], trust[160];
  heddle_error err = {0};
  heddle_signature says = {.struct_size = sizeof says};
  begin();
  snprintf(trust, sizeof trust, "%s", at("a.pub"));
  write_bytes("m.json", text, model(text, 600));
  assert_int_equal(chmod(at("m.json"), 0640), 0);
  sign_as("m.json", NULL, "a", NULL, 1, HEDDLE_SIGN_APPENDED);
  struct stat info;
  assert_int_equal(stat(at("m.json"), &info), 0);
  assert_int_equal(info.st_mode & 0777, 0640); /* who may read it, still may, and nobody else */
  good(load("m.json", NULL, NULL, &err), &err);
  good(load("m.json", trust, NULL, &err), &err);
  sign_as("m.json", NULL, "b", NULL, 2, HEDDLE_SIGN_APPENDED); /* replaces the other */
  good(heddle_signature_read(at("m.json"), &says, &err), &err);
  assert_true(says.sequence == 2 && says.bytes == 600);
  refused(load("m.json", trust, NULL, &err), HEDDLE_EDENIED, "does not list", &err);
  sign_as("m.json", NULL, "a", NULL, 3, HEDDLE_SIGN_DETACHED);
  good(heddle_signature_read(at("m.json"), &says, &err), &err);
  assert_int_equal(says.flags, HEDDLE_SIGNATURE_SIGNED | HEDDLE_SIGNATURE_DETACHED);
  good(load("m.json", trust, NULL, &err), &err);
  sign_as("m.json", "copy.json", "a", "c", 4, 0);
  good(load("copy.json", trust, at("c"), &err), &err);
  good(heddle_verify(at("copy.json"), trust, &says, &err), &err);
  assert_true((says.flags & HEDDLE_SIGNATURE_ENCRYPTED) != 0 && strlen(says.encryption_key_id) == 16);
  end();
}

/* HEDDLE_TRUST counts for every reader, and a call cannot turn it off. */
static void the_variable_counts_everywhere(void **state) {
  (void)state;
  char text[WHOLE];
  heddle_error err = {0};
  heddle_context *ctx = NULL;
  heddle_model *m = NULL;
  heddle_module *l = NULL;
  heddle_params *p = NULL;
  const heddle_setting off[] = {{"plugins", "off"}, {"config", "off"}, {"trust", "off"}};
  begin();
  write_bytes("m.json", text, model(text, 600));
  make_params("m.params");
  write_bytes("m.onnx", "", 0);
  write_bytes("l.so", "\177ELF", 4);
  assert_int_equal(setenv("HEDDLE_TRUST", at("a.pub"), 1), 0);
  good(heddle_context_create(off, 3, NULL, NULL, &ctx, &err), &err);
  refused(load("m.json", NULL, NULL, &err), HEDDLE_EDENIED, "not signed", &err);
  refused(load("m.onnx", NULL, NULL, &err), HEDDLE_EDENIED, "not signed", &err);
  refused(heddle_params_load(at("m.params"), NULL, &p, &err), HEDDLE_EDENIED, "not signed", &err);
  refused(parse("{}", 2, NULL, NULL, &err), HEDDLE_EDENIED, "not signed", &err);
  refused(heddle_params_parse("", 0, "p", NULL, &p, &err), HEDDLE_EDENIED, "not signed", &err);
  static const char *const models[] = {"m.json", "m.onnx", "l.so"};
  for (int i = 0; i < 3; i++)
    refused(heddle_model_load(ctx, at(models[i]), NULL, NULL, &m, &err), HEDDLE_EDENIED, "not signed", &err);
  refused(heddle_module_load(ctx, at("l.so"), &l, &err), HEDDLE_EDENIED, "not signed", &err);
  refused(heddle_unpack(at("l.so"), at("out"), &err), HEDDLE_EDENIED, "not signed", &err);
  sign_as("m.json", NULL, "a", NULL, 0, 0); /* the parameters beside it are not */
  refused(heddle_model_load(ctx, at("m.json"), NULL, NULL, &m, &err), HEDDLE_EDENIED, "m.params: it is not signed",
          &err);
  assert_int_equal(setenv("HEDDLE_TRUST", at("nothing"), 1), 0);
  refused(load("m.json", NULL, NULL, &err), HEDDLE_EIO, "nothing", &err);
  assert_int_equal(unsetenv("HEDDLE_TRUST"), 0);
  heddle_context_release(ctx);
  end();
}

CASES(CASE(refuses_every_changed_bit), CASE(refuses_every_length), CASE(refuses_moved_chunks),
      CASE(who_signed_and_which_release), CASE(keys_stay_secret), CASE(keys_come_from_everywhere),
      CASE(what_was_verified_is_used), CASE(signed_files_stay_loadable), CASE(the_variable_counts_everywhere))
