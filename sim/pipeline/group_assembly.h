// Rollouts wait here for the rest of their group: the advantage is computed within the group, so none of them can be
// used before its slowest member is graded (paper section 1).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sim/pipeline/rollout.h"

namespace millrace {

using GroupIndex = std::uint32_t;

class GroupAssembly {
   public:
    explicit GroupAssembly(std::int64_t group_size) : size_(static_cast<std::size_t>(group_size)) {}

    /// A new group, the first member of which begins under policy version `version`.
    GroupIndex open(std::int32_t version) {
        GroupIndex group;
        if (free_.empty()) {
            group = static_cast<GroupIndex>(groups_.size());
            groups_.emplace_back();
            members_.resize(members_.size() + size_);
        } else {
            group = free_.back();
            free_.pop_back();
        }
        groups_[group] = {version, 0, 0};
        return group;
    }

    std::int32_t version(GroupIndex group) const { return groups_[group].version; }

    /// A member has started. Members are stored in the order in which they did.
    void add(GroupIndex group, RolloutIndex rollout) { members_[group * size_ + groups_[group].started++] = rollout; }

    /// A member is graded; true when it was the last one.
    bool graded(GroupIndex group) { return ++groups_[group].graded == size_; }

    std::span<const RolloutIndex> members(GroupIndex group) const { return {&members_[group * size_], size_}; }

    void close(GroupIndex group) { free_.push_back(group); }

   private:
    struct Group {
        std::int32_t version = 0;
        std::uint32_t started = 0;
        std::uint32_t graded = 0;
    };

    std::size_t size_;
    std::vector<Group> groups_;
    std::vector<RolloutIndex> members_;  ///< size_ places per group
    std::vector<GroupIndex> free_;
};

}  // namespace millrace
