// heddle/cpp/sign.hpp: keys, signatures and encryption of files of models. heddle/sign.h has the contracts. Any thread;
// they block.
#ifndef HEDDLE_CPP_SIGN_HPP
#define HEDDLE_CPP_SIGN_HPP

#include <string>

#include "heddle/cpp/graph.hpp"
#include "heddle/sign.h"

namespace heddle {

// How a file is signed and encrypted: the paths of the keys; "" leaves one out.
struct SignOptions {
  std::string sign = {};
  std::string encrypt = {};
  std::uint64_t sequence = 0;
  std::uint32_t flags = 0; // HEDDLE_SIGN_*
};

namespace detail {
inline heddle_sign_options sign_options_of(const SignOptions &options) noexcept {
  heddle_sign_options out = sized<heddle_sign_options>();
  out.sign = or_null(options.sign);
  out.encrypt = or_null(options.encrypt);
  out.sequence = options.sequence;
  out.flags = options.flags;
  return out;
}
} // namespace detail

// Creates a key in a new file: HEDDLE_KEY_SIGNING, with the public half in PATH.pub, or HEDDLE_KEY_ENCRYPTION.
inline Status try_create_key(const std::string &path, std::uint32_t kind) {
  return detail::status_of([&](heddle_error *err) { return heddle_key_create(path.c_str(), kind, err); }, path.c_str());
}

// The public half of a signing key, as a line of a trust file.
inline Result<std::string> try_public_key(const std::string &path) {
  char *out = nullptr;
  Status s =
      detail::status_of([&](heddle_error *err) { return heddle_key_public(path.c_str(), &out, err); }, path.c_str());
  if (!s) return s.error();
  return detail::taken(out);
}

// Signs and encrypts a file; out_path "": the file itself.
inline Status try_sign(const std::string &path, const SignOptions &options, const std::string &out_path = {}) {
  const heddle_sign_options o = detail::sign_options_of(options);
  return detail::status_of(
      [&](heddle_error *err) { return heddle_sign(path.c_str(), detail::or_null(out_path), &o, err); }, path.c_str());
}

// What a file says of its signature and encryption; nothing is verified.
inline Result<heddle_signature> try_read_signature(const std::string &path) {
  heddle_signature out = detail::sized<heddle_signature>();
  Status s = detail::status_of([&](heddle_error *err) { return heddle_signature_read(path.c_str(), &out, err); },
                               path.c_str());
  if (!s) return s.error();
  return out;
}

// Verifies a file by a trust file; "": that of HEDDLE_TRUST.
inline Result<heddle_signature> try_verify(const std::string &path, const std::string &trust = {}) {
  heddle_signature out = detail::sized<heddle_signature>();
  Status s = detail::status_of(
      [&](heddle_error *err) { return heddle_verify(path.c_str(), detail::or_null(trust), &out, err); }, path.c_str());
  if (!s) return s.error();
  return out;
}

// Writes the content of an encrypted file; key "": as heddle_key_callback describes.
inline Status try_decrypt(const std::string &path, const std::string &out_path, const std::string &key = {}) {
  return detail::status_of(
      [&](heddle_error *err) { return heddle_decrypt(path.c_str(), out_path.c_str(), detail::or_null(key), err); },
      path.c_str());
}

// Sets the function that gives the keys of encrypted files; NULL removes it. user is the program's.
inline Status try_set_key_callback(heddle_key_fn ask, void *user = nullptr) {
  return detail::status_of([&](heddle_error *err) { return heddle_key_callback(ask, user, err); });
}

#ifndef HEDDLE_CPP_NO_EXCEPTIONS
inline void create_key(const std::string &path, std::uint32_t kind) {
  try_create_key(path, kind).value();
}
inline std::string public_key(const std::string &path) {
  return try_public_key(path).value();
}
inline void sign(const std::string &path, const SignOptions &options, const std::string &out_path = {}) {
  try_sign(path, options, out_path).value();
}
inline heddle_signature read_signature(const std::string &path) {
  return try_read_signature(path).value();
}
inline heddle_signature verify(const std::string &path, const std::string &trust = {}) {
  return try_verify(path, trust).value();
}
inline void decrypt(const std::string &path, const std::string &out_path, const std::string &key = {}) {
  try_decrypt(path, out_path, key).value();
}
inline void set_key_callback(heddle_key_fn ask, void *user = nullptr) {
  try_set_key_callback(ask, user).value();
}
#endif

} // namespace heddle

#endif
