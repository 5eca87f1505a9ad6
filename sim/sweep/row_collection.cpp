#include "sim/sweep/row_collection.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <utility>

namespace millrace {

namespace {

[[noreturn]] void refuse_unknown(const BlockRow& row, const std::string& where) {
    throw std::runtime_error(where + " has a row of the design " + row.design + ", which the sweep has not");
}

}  // namespace

RowCollection::RowCollection(const Sweep& sweep) : may_grow_(sweep.most_added > 0) {
    learn_designs(sweep);
}

void RowCollection::learn_designs(const Sweep& sweep) {
    for (std::size_t i = rows_.size(); i < sweep.designs.size(); ++i) {
        design_by_id_[sweep.designs[i].id] = i;
    }
    rows_.resize(sweep.designs.size());
    for (auto& [row, where] : std::exchange(waiting_, {})) {
        add(std::move(row), where);
    }
}

void RowCollection::refuse_waiting() const {
    if (!waiting_.empty()) {
        refuse_unknown(waiting_.front().first, waiting_.front().second);
    }
}

void RowCollection::add(BlockRow row, const std::string& where) {
    const auto design = design_by_id_.find(row.design);
    if (design == design_by_id_.end()) {
        if (!may_grow_) {
            refuse_unknown(row, where);
        }
        // Files are read again and again while others write them.
        if (std::none_of(waiting_.begin(), waiting_.end(), [&](const auto& other) { return other.first == row; })) {
            waiting_.emplace_back(std::move(row), where);
        }
        return;
    }
    const std::int64_t first = row.first_replication;
    const auto [there, added] = rows_[design->second].try_emplace(first, row);
    if (!added && there->second != row) {
        throw std::runtime_error(where + " has another row than the files before it for the design " + row.design +
                                 " from replication " + std::to_string(first) +
                                 ": they were written by different versions of millrace or have been changed. Remove "
                                 "the wrong one and start the sweep again.");
    }
}

const BlockRow* RowCollection::find(std::size_t design, std::int64_t first_replication) const {
    const auto row = rows_[design].find(first_replication);
    return row == rows_[design].end() ? nullptr : &row->second;
}

std::size_t RowCollection::size() const {
    std::size_t size = 0;
    for (const auto& rows : rows_) {
        size += rows.size();
    }
    return size;
}

std::string RowCollection::text() const {
    std::string text;
    for (const auto& rows : rows_) {
        for (const auto& [first, row] : rows) {
            text += block_row_json(row);
            text += '\n';
        }
    }
    return text;
}

void read_rows(const std::string& folder, RowCollection& rows) {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
        const std::string name = entry.path().filename().string();
        if (name.starts_with("runs") && name.ends_with(".jsonl")) {
            files.push_back(entry.path());
        }
    }
    std::sort(files.begin(), files.end());
    for (const std::filesystem::path& file : files) {
        std::ifstream stream(file, std::ios::binary);
        std::ostringstream text;
        text << stream.rdbuf();
        if (!stream) {
            throw std::runtime_error("cannot read " + file.string());
        }
        for (BlockRow& row : read_block_rows(text.view(), file.string(), TornLine::is_dropped).rows) {
            rows.add(std::move(row), file.string());
        }
    }
}

}  // namespace millrace
