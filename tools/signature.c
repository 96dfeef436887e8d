/* tools/signature.c: signatures and encryption as heddle info shows them, unverified; verified ones have been checked
 * before, when the file was loaded. */
#include "signature.h"

#include <inttypes.h>

#include "text.h"

static bool read_it(const char *path, heddle_signature *out) {
  *out = (heddle_signature){.struct_size = sizeof *out};
  return heddle_signature_read(path, out, NULL) == HEDDLE_OK && out->flags != 0;
}

bool signature_says(const char *path, uint32_t flag) {
  heddle_signature s;
  return read_it(path, &s) && (s.flags & flag) != 0;
}

void signature_print(const char *path) {
  heddle_signature s;
  if (!read_it(path, &s)) return;
  if ((s.flags & HEDDLE_SIGNATURE_SIGNED) != 0)
    print("signed     by key %s, sequence number %" PRIu64 "%s\n", s.key_id, s.sequence,
          (s.flags & HEDDLE_SIGNATURE_DETACHED) != 0 ? ", in the .sig beside it" : "");
  if ((s.flags & HEDDLE_SIGNATURE_ENCRYPTED) != 0) print("encrypted  with key %s\n", s.encryption_key_id);
}

json_t *signature_object(const char *path) {
  heddle_signature s;
  if (!read_it(path, &s)) return json_null();
  bool is_signed = (s.flags & HEDDLE_SIGNATURE_SIGNED) != 0, is_encrypted = (s.flags & HEDDLE_SIGNATURE_ENCRYPTED) != 0;
  return json_pack("{so so sb so}", "key_id", is_signed ? json_string(s.key_id) : json_null(), "sequence",
                   is_signed ? json_integer((json_int_t)s.sequence) : json_null(), "detached",
                   (s.flags & HEDDLE_SIGNATURE_DETACHED) != 0, "encryption_key_id",
                   is_encrypted ? json_string(s.encryption_key_id) : json_null());
}
