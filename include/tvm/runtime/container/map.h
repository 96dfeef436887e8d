// tvm/runtime/container/map.h: references by keys, in the order in which the keys came; copied when it is changed through
// one of several references. Keys that are texts are compared by their text. Written for Heddle; the names are TVM's.
#ifndef TVM_RUNTIME_CONTAINER_MAP_H_
#define TVM_RUNTIME_CONTAINER_MAP_H_

#include <unordered_map>

#include <tvm/runtime/container/array.h>

namespace tvm {
namespace runtime {

class MapNode : public Object {
public:
  static constexpr const char *_type_key = "Map";
  TVM_DECLARE_FINAL_OBJECT_INFO(MapNode, Object)
  using Item = std::pair<ObjectRef, ObjectRef>;

  std::size_t size() const {
    return items.size();
  }
  // The place of a key; size() where there is none.
  std::size_t find(const ObjectRef &key) const {
    const auto at = places.find(key);
    return at != places.end() ? at->second : items.size();
  }
  void set(const ObjectRef &key, const ObjectRef &value) {
    const std::size_t at = find(key);
    if (at < items.size()) {
      items[at].second = value;
      return;
    }
    items.emplace_back(key, value);
    places.emplace(key, at);
  }
  void erase(std::size_t at) {
    items.erase(items.begin() + static_cast<std::ptrdiff_t>(at));
    places.clear();
    for (std::size_t i = 0; i < items.size(); i++) places.emplace(items[i].first, i);
  }

  std::vector<Item> items;

private:
  std::unordered_map<ObjectRef, std::size_t, ObjectHash, ObjectEqual> places;
};

template <class K, class V> class Map : public ObjectRef {
public:
  static_assert(std::is_base_of<ObjectRef, K>::value && std::is_base_of<ObjectRef, V>::value,
                "the keys and values of a Map are references");
  using ContainerType = MapNode;
  using key_type = K;
  using mapped_type = V;
  using value_type = std::pair<K, V>;

  // Goes over the pairs, and gives each as references of their classes.
  class iterator {
  public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = std::pair<K, V>;
    using difference_type = std::ptrdiff_t;
    using reference = value_type;
    // Holds the pair that -> gives.
    struct pointer {
      value_type pair;
      const value_type *operator->() const {
        return &pair;
      }
    };

    iterator() : at_(nullptr) {}
    explicit iterator(const MapNode::Item *at) : at_(at) {}
    value_type operator*() const {
      return value_type(Downcast<K>(at_->first), Downcast<V>(at_->second));
    }
    pointer operator->() const {
      return pointer{**this};
    }
    iterator &operator++() {
      ++at_;
      return *this;
    }
    iterator operator++(int) {
      return iterator(at_++);
    }
    bool operator==(const iterator &other) const {
      return at_ == other.at_;
    }
    bool operator!=(const iterator &other) const {
      return at_ != other.at_;
    }

  private:
    const MapNode::Item *at_;
  };

  Map() : ObjectRef(make_object<MapNode>()) {}
  explicit Map(std::nullptr_t) {}
  explicit Map(ObjectPtr<Object> n) : ObjectRef(std::move(n)) {}
  Map(const Map &) = default;
  Map(Map &&) = default;
  Map &operator=(const Map &) = default;
  Map &operator=(Map &&) = default;
  Map(std::initializer_list<value_type> items) : Map(items.begin(), items.end()) {}
  template <class Hash, class Equal>
  Map(const std::unordered_map<K, V, Hash, Equal> &items) : Map(items.begin(), items.end()) {}
  template <class Iterator, class = typename std::iterator_traits<Iterator>::iterator_category>
  Map(Iterator first, Iterator last) : Map() {
    for (; first != last; ++first) Set(first->first, first->second);
  }

  std::size_t size() const {
    return data_ != nullptr ? data()->size() : 0;
  }
  bool empty() const {
    return size() == 0;
  }
  std::size_t count(const K &key) const {
    return find(key) != end() ? 1 : 0;
  }
  V at(const K &key) const {
    const iterator one = find(key);
    if (one == end()) throw Error("cannot find the key in the map");
    return (*one).second;
  }
  V operator[](const K &key) const {
    return at(key);
  }
  Optional<V> Get(const K &key) const {
    const iterator one = find(key);
    return one != end() ? Optional<V>((*one).second) : Optional<V>();
  }
  iterator find(const K &key) const {
    return data_ != nullptr ? iterator(data()->items.data() + data()->find(key)) : end();
  }
  iterator begin() const {
    return iterator(data_ != nullptr ? data()->items.data() : nullptr);
  }
  iterator end() const {
    return iterator(data_ != nullptr ? data()->items.data() + data()->items.size() : nullptr);
  }
  void Set(const K &key, const V &value) {
    node().set(key, value);
  }
  void erase(const K &key) {
    if (find(key) == end()) return;
    MapNode &own = node();
    own.erase(own.find(key));
  }
  void clear() {
    data_ = make_object<MapNode>();
  }
  const MapNode *operator->() const {
    return data();
  }

private:
  const MapNode *data() const {
    return static_cast<const MapNode *>(data_.get());
  }
  MapNode &node() {
    if (data_ == nullptr) data_ = make_object<MapNode>();
    if (!data_.unique()) data_ = make_object<MapNode>(*data());
    return *static_cast<MapNode *>(data_.get());
  }
};

} // namespace runtime

using runtime::Map;
using runtime::MapNode;

} // namespace tvm

#endif
