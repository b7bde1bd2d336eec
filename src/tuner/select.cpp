// SPDX-License-Identifier: Apache-2.0
//
// Choice of tactics and layouts together. Values carry the layout their producer gives; each further layout that some
// consumer needs costs one reformat, shared by all consumers that need it.
#include "tuner/select.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace hone {
namespace {

constexpr Layout kLayouts[] = {Layout::linear, Layout::channels_last, Layout::blocked8, Layout::blocked16};
constexpr double kImpossible = 1e9;

/// Where a value comes from and goes to.
struct ValueInfo {
  int producer = -1;  // region; -1: network input
  size_t output = 0;
  std::vector<std::pair<int, size_t>> users;  // region, operand
};

class Selector {
 public:
  explicit Selector(const SelectProblem& problem) : problem_(problem) {
    for (size_t r = 0; r < problem.regions.size(); ++r) {
      const SelectRegion& region = problem.regions[r];
      for (size_t i = 0; i < region.inputs.size(); ++i)
        values_[region.inputs[i]].users.emplace_back(static_cast<int>(r), i);
      for (size_t i = 0; i < region.outputs.size(); ++i) {
        values_[region.outputs[i]].producer = static_cast<int>(r);
        values_[region.outputs[i]].output = i;
      }
    }
  }

  Selected best() {
    Selected winner;
    winner.ms = std::numeric_limits<double>::infinity();
    for (const Layout layout : kLayouts) {
      start(layout);
      while (sweep()) {}
      if (const double ms = total(); ms < winner.ms * (1 - 1e-9)) winner = {choice_, ms};
    }
    return winner;
  }

 private:
  const SelectOption& chosen(int region) const {
    return problem_.regions[static_cast<size_t>(region)]
        .options[static_cast<size_t>(choice_[static_cast<size_t>(region)])];
  }

  /// For each region the fastest option among those that use `layout` most.
  void start(Layout layout) {
    choice_.clear();
    for (const SelectRegion& region : problem_.regions) {
      const auto matches = [&](const SelectOption& option) {
        return std::count(option.in.begin(), option.in.end(), layout) +
               std::count(option.out.begin(), option.out.end(), layout);
      };
      size_t best = 0;
      for (size_t i = 1; i < region.options.size(); ++i) {
        const auto more = matches(region.options[i]) - matches(region.options[best]);
        if (more > 0 || (more == 0 && region.options[i].ms < region.options[best].ms)) best = i;
      }
      choice_.push_back(static_cast<int>(best));
    }
  }

  /// Cost of all reformats of one value under the present choice.
  double reformats(int id) const {
    const ValueInfo& value = values_.at(id);
    Layout have = Layout::linear;
    if (value.producer >= 0) have = chosen(value.producer).out[value.output];
    else if (const auto at = problem_.given.find(id); at != problem_.given.end()) have = at->second;
    uint32_t needed = 0;  // a bit for each layout
    const auto need = [&](Layout layout) { needed |= uint32_t{1} << static_cast<unsigned>(layout); };
    for (const auto& [region, operand] : value.users) need(chosen(region).in[operand]);
    if (const auto at = problem_.wanted.find(id); at != problem_.wanted.end()) need(at->second);
    double ms = 0;
    for (; needed != 0; needed &= needed - 1) {
      const auto layout = static_cast<Layout>(std::countr_zero(needed));
      if (layout == have) continue;
      const auto at = problem_.reformat_ms.find({id, have, layout});
      ms += at == problem_.reformat_ms.end() ? kImpossible : at->second;
    }
    return ms;
  }

  /// What the regions from `first` up to `last` cost, with the reformats of all that they read and write.
  double local(size_t first, size_t last) const {
    std::vector<int> touched;
    double ms = 0;
    for (size_t r = first; r < last; ++r) {
      const SelectRegion& region = problem_.regions[r];
      touched.insert(touched.end(), region.inputs.begin(), region.inputs.end());
      touched.insert(touched.end(), region.outputs.begin(), region.outputs.end());
      ms += chosen(static_cast<int>(r)).ms;
    }
    std::sort(touched.begin(), touched.end());
    touched.erase(std::unique(touched.begin(), touched.end()), touched.end());
    for (const int id : touched) ms += reformats(id);
    return ms;
  }

  bool improve(size_t r) {
    const int before = choice_[r];
    const double present = local(r, r + 1);
    int best = before;
    double best_ms = present - 1e-9;
    for (size_t i = 0; i < problem_.regions[r].options.size(); ++i) {
      choice_[r] = static_cast<int>(i);
      if (const double ms = local(r, r + 1); ms < best_ms - 1e-9) {
        best_ms = ms;
        best = static_cast<int>(i);
      }
    }
    choice_[r] = best;
    return best != before;
  }

  /// Moves a run of neighbouring regions to one layout together, where single steps would each pay two reformats.
  bool improve_run(size_t first, size_t length, Layout layout) {
    const size_t last = std::min(first + length, problem_.regions.size());
    const double before = local(first, last);
    const auto begin = choice_.begin() + static_cast<ptrdiff_t>(first),
               end = choice_.begin() + static_cast<ptrdiff_t>(last);
    const std::vector<int> kept(begin, end);
    for (size_t r = first; r < last; ++r) {
      const SelectRegion& region = problem_.regions[r];
      int best = -1;
      for (size_t i = 0; i < region.options.size(); ++i) {
        const SelectOption& option = region.options[i];
        const bool fits = std::find(option.out.begin(), option.out.end(), layout) != option.out.end();
        if (fits && (best < 0 || option.ms < region.options[static_cast<size_t>(best)].ms)) best = static_cast<int>(i);
      }
      if (best >= 0) choice_[r] = best;
    }
    if (local(first, last) < before - 1e-9) return true;
    std::copy(kept.begin(), kept.end(), begin);
    return false;
  }

  bool sweep() {
    bool changed = false;
    for (size_t r = 0; r < choice_.size(); ++r) changed |= improve(r);
    for (size_t r = choice_.size(); r-- > 0;) changed |= improve(r);
    if (changed || choice_.size() > 400) return changed;
    for (const size_t length : {2, 3, 5, 8})
      for (size_t r = 0; r + 1 < choice_.size(); ++r)
        for (const Layout layout : {Layout::linear, Layout::channels_last})
          if (improve_run(r, length, layout)) return true;
    return false;
  }

  double total() const {
    double ms = 0;
    for (size_t r = 0; r < choice_.size(); ++r) ms += chosen(static_cast<int>(r)).ms;
    for (const auto& [id, value] : values_) ms += reformats(id);
    return ms;
  }

  const SelectProblem& problem_;
  std::map<int, ValueInfo> values_;
  std::vector<int> choice_;
};

/// Among options with the same layouts only the fastest matters; a tie goes to the earlier one.
SelectProblem keep_fastest(SelectProblem problem) {
  for (SelectRegion& region : problem.regions) {
    std::map<std::pair<std::vector<Layout>, std::vector<Layout>>, SelectOption> fastest;
    for (const SelectOption& option : region.options) {
      const auto [at, fresh] = fastest.try_emplace({option.in, option.out}, option);
      const double margin = std::max(0.02 * at->second.ms, 1e-4);
      if (!fresh && option.ms < at->second.ms - margin) at->second = option;
    }
    region.options.clear();
    for (auto& [layouts, option] : fastest) region.options.push_back(std::move(option));
    std::sort(region.options.begin(), region.options.end(),
              [](const SelectOption& a, const SelectOption& b) { return a.tactic < b.tactic; });
  }
  return problem;
}

}  // namespace

Selected select(const SelectProblem& problem) {
  const SelectProblem reduced = keep_fastest(problem);
  Selected selected = Selector(reduced).best();
  for (size_t r = 0; r < selected.option.size(); ++r) {
    const int tactic = reduced.regions[r].options[static_cast<size_t>(selected.option[r])].tactic;
    const auto& original = problem.regions[r].options;
    selected.option[r] = static_cast<int>(
        std::find_if(original.begin(), original.end(), [&](const SelectOption& o) { return o.tactic == tactic; }) -
        original.begin());
  }
  return selected;
}

}  // namespace hone
