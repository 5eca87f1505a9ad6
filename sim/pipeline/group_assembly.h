// Rollouts wait here for the rest of their group: the advantage is computed within the group, so none of them can be
// used before its slowest member is graded (paper section 1).
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/engine/time.h"
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
        groups_[group] = {};
        groups_[group].version = version;
        return group;
    }

    std::int32_t version(GroupIndex group) const { return groups_[group].version; }

    void prefetch(GroupIndex group) const { __builtin_prefetch(&groups_[group]); }

    /// A member has started. Members are stored in the order in which they did.
    void add(GroupIndex group, RolloutIndex rollout) { members_[group * size_ + groups_[group].started++] = rollout; }

    /// A member is graded; true when it was the last one.
    bool graded(GroupIndex group) { return ++groups_[group].graded == size_; }

    /// A member will be graded at `at`; true when this is now known of all, and with it complete_at().
    bool will_be_graded(GroupIndex group, Time at) {
        groups_[group].complete_at = std::max(groups_[group].complete_at, at);
        return graded(group);
    }
    Time complete_at(GroupIndex group) const { return groups_[group].complete_at; }

    /// It is complete and waits for room in the store.
    void handed_on(GroupIndex group) { groups_[group].incomplete = false; }

    /// The members that have started of every group that was not handed on.
    template <typename Visit>
    void visit_incomplete(Visit visit) const {
        for (GroupIndex group = 0; group < groups_.size(); ++group) {
            if (groups_[group].incomplete) {
                visit(members(group).first(groups_[group].started));
            }
        }
    }

    std::span<const RolloutIndex> members(GroupIndex group) const { return {&members_[group * size_], size_}; }

    void close(GroupIndex group) { free_.push_back(group); }

   private:
    struct Group {
        Time complete_at;
        std::int32_t version = 0;
        std::uint32_t started = 0;
        std::uint32_t graded = 0;
        bool incomplete = true;  ///< not handed on
    };

    std::size_t size_;
    std::vector<Group> groups_;
    std::vector<RolloutIndex> members_;  ///< size_ places per group
    std::vector<GroupIndex> free_;
};

}  // namespace millrace
