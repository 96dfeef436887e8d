/* core/sign_left_out.c: the functions of heddle/sign.h in a build without libsodium. */
#include "core/parts.h"
#include "core/sealed.h"

#if !HEDDLE_HAS_SODIUM
static heddle_status none(heddle_error *err) {
  return heddle__left_out(err, "signing or encryption of files", "HEDDLE_SODIUM");
}

heddle_status heddle_key_create(const char *path, uint32_t kind, heddle_error *err) {
  (void)path, (void)kind;
  return none(err);
}

heddle_status heddle_key_public(const char *path, char **out, heddle_error *err) {
  (void)path;
  if (out != NULL) *out = NULL;
  return none(err);
}

heddle_status heddle_sign(const char *path, const char *out_path, const heddle_sign_options *options,
                          heddle_error *err) {
  (void)path, (void)out_path, (void)options;
  return none(err);
}

heddle_status heddle_verify(const char *path, const char *trust, heddle_signature *out, heddle_error *err) {
  (void)path, (void)trust, (void)out;
  return none(err);
}

heddle_status heddle_decrypt(const char *path, const char *out_path, const char *key, heddle_error *err) {
  (void)path, (void)out_path, (void)key;
  return none(err);
}

heddle_status heddle_key_callback(heddle_key_fn ask, void *user, heddle_error *err) {
  (void)ask, (void)user;
  return none(err);
}

heddle_status heddle__trust_accepts(const char *trust, const heddle__signature *signature, heddle_error *err) {
  (void)trust, (void)signature;
  return none(err);
}
#endif
