#include "clefkit/cli/answer_view.h"

#include <algorithm>
#include <string_view>

#include "clefkit/base/error.h"
#include "clefkit/cli/terminal_text.h"

namespace clefkit::cli {
namespace {

constexpr std::size_t kShownOptions = 12;

double number_of(const Json& object, std::string_view key) {
  const Json* const value = object.find(key);
  return value == nullptr ? 0.0 : value->as_double().value_or(0.0);
}

class View {
 public:
  explicit View(bool colour) : colour_(colour) {}

  void add(const std::string& id, const Json& answer) {
    const std::string& type = answer.find("type")->string();
    if (type == "noul") {
      const double yes = number_of(answer, "noul");
      heading(id, yes >= 0.5 ? "yes" : "no", "");
      line("yes", yes, yes >= 0.5);
      line("no", 1 - yes, yes < 0.5);
    } else if (type == "choice") {
      const std::string& choice = answer.find("choice")->string();
      heading(id, choice, fmt::format("confidence {:.3f}", number_of(answer, "confidence")));
      options(*answer.find("probabilities"), nullptr, choice);
    } else {
      heading(id, fmt::format("{:.2f}", number_of(answer, "score")),
              fmt::format("confidence {:.3f}", number_of(answer, "confidence")));
      options(*answer.find("probabilities"), answer.find("legend"), "");
    }
    out_ += '\n';
  }

  std::string take() { return std::move(out_); }

 private:
  void heading(const std::string& id, std::string_view value, const std::string& note) {
    out_ += style("1", printable(id)) + "  " + style("1;36", printable(value));
    if (!note.empty()) out_ += "  " + style("2", note);
    out_ += '\n';
  }

  void options(const Json& probabilities, const Json* legend, std::string_view chosen) {
    struct Row {
      std::string name;
      double share;
      bool is_top;
    };
    std::vector<Row> rows;
    double top = 0;
    for (const auto& [option, share] : probabilities.members()) {
      top = std::max(top, share.as_double().value_or(0.0));
    }
    for (const auto& [option, share] : probabilities.members()) {
      const double value = share.as_double().value_or(0.0);
      std::string name = option;
      if (const Json* text = legend == nullptr ? nullptr : legend->find(option)) {
        name += " " + (text->is_string() ? text->string() : to_string(*text));
      }
      rows.push_back({name, value, chosen.empty() ? value == top : option == chosen});
    }
    std::size_t hidden = 0;
    if (rows.size() > kShownOptions) {
      // Too many to read: the likeliest, in falling order.
      std::ranges::stable_sort(rows, std::greater<>(), &Row::share);
      hidden = rows.size() - kShownOptions;
      rows.resize(kShownOptions);
    }
    name_width_ = 3;
    for (const Row& row : rows) {
      name_width_ = std::max(name_width_, std::min(kWidestName, width_of(printable(row.name))));
    }
    for (const Row& row : rows) line(row.name, row.share, row.is_top);
    if (hidden > 0)
      out_ += style("2", fmt::format("  … and {} less likely options", hidden)) + "\n";
    name_width_ = 3;
  }

  void line(std::string_view name, double share, bool is_top) {
    const std::string text = "  " + fitted(name, name_width_) + "  ";
    out_ += text + style(is_top ? "36" : "2", bar(share)) + fmt::format("  {:.4f}\n", share);
  }

  std::string style(std::string_view code, const std::string& text) const {
    return colour_ ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : text;
  }

  bool colour_;
  std::size_t name_width_ = 3;
  std::string out_;
};

}  // namespace

std::string answer_view(const Json& response, bool colour) {
  View view(colour);
  for (const auto& [id, answer] : response.find("answers")->members()) view.add(id, answer);
  return view.take();
}

}  // namespace clefkit::cli
