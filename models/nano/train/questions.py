"""How questions are asked: wordings, ids and criteria of every skill (see wording.py)."""

from wording import HELD

_WHO = "(customer|writer|sender|client)"

ASK = {
    "route": ["Which (team|department|desk) should (handle|answer|get|read) (this|the) (message|request|mail)?", "(Route|Send) (the|this) (message|request|mail) to (a|the right|one) (team|department).", "Who should (answer|handle|get) this?", "(Choose|Pick|Select) the right (department|team|desk).", "Which (department|team) is responsible?", "Pick the (team|department) for this (request|message|mail).",
              "What is the (message|mail|request) about?", "(Topic|Team|Department) of the message", "", HELD, "Choose the team that should handle this request.", "Which team is this message for?", "Route this to the right department.", "Which department gets this mail?"],
    "refund": ["Does the " + _WHO + " (ask for|want|request|expect) a refund?", "(Is|Was) a refund (requested|asked for|wanted)?", "The " + _WHO + " wants (the|their) money back.", "Does the " + _WHO + " want (the|their|) money back?", "The (message|mail|text) asks for a refund.", "Should (the|) money be (paid back|returned|refunded)?",
               HELD, "Does the message ask for money back?", "The customer asks for a refund.", "Is the writer asking for a refund?", "Is there a request for a refund?"],
    "cancel": ["Does the " + _WHO + " want to (cancel|stop|end) (something|a plan|an order)?", "Is a cancellation (requested|asked for|wanted)?", "The " + _WHO + " wants to (cancel|end|stop) something.", "Does the (message|mail|text) ask to cancel (a plan|an order|something)?", "The " + _WHO + " asks to (stop|end) a (subscription|contract|plan).", "Should (something|an order|a plan) be cancelled?",
               HELD, "Does the writer want to cancel?", "The customer asks to cancel.", "Is the customer asking for a cancellation?", "Is there a request to cancel something?"],
    "thanks": ["Does the " + _WHO + " (say thank you|thank us|say thanks)?", "Is the " + _WHO + " (thanking us|thankful|grateful)?", "The (message|mail|text) contains (thanks|a thank you).", "Does the (message|mail|text) say (thanks|thank you)?", "(Are|Is) there (thanks|a thank you) in the (message|text|mail)?",
               HELD, "Does the writer express thanks?", "The customer says thank you.", "Does the message contain a thank you?", "Is the customer saying thanks?"],
    "urgency": ["How urgent is (it|this|the request|the mail)?", "Rate the urgency (of the message|of the mail|).", "How (soon|fast|quickly) does it need an answer?", "Urgency of the (message|mail|request)", "How (soon|fast) must (we|somebody) (answer|reply)?", HELD, "How urgent is the message?", "Rate how urgent this is.", "How quickly should we reply?"],
    "urgent": ["Is (it|this|the request|the mail) urgent?", "The (message|mail) is urgent.", "(Does|Must) (it|this) (need|have) an answer (at once|now|immediately)?", "Must we (answer|reply) (at once|immediately|now)?", HELD, "Is the message urgent?", "This is urgent.", "Must it be answered at once?"],
    "sentiment": ["What is the (mood|sentiment) of the " + _WHO + "?", "Rate the (sentiment|mood) (of the message|).", "How does the " + _WHO + " feel?", "(Sentiment|Mood) of the (message|mail|text)", "How (happy|satisfied) is the " + _WHO + "?", HELD, "How does the person feel?", "Rate the mood of the customer.", "What is the sentiment of the message?", "How happy does the writer sound?"],
    "mention": ["Does the (message|mail|text) mention (a|the) {f}?", "Is the (message|mail) about (a|the) {f}?", "The " + _WHO + " (mentions|writes about) (a|the) {f}.", HELD, "Does the writer mention a {f}?", "The message mentions the {f}."],
    "language": ["Which language is (it|this|the text)?", "In (which|what) language is the (text|sentence) (written|)?", "Language of the (text|sentence)", "(Detect|Find|Name) the language.", "(What|Which) language (do you see|is used)?", "", HELD, "Which language is the text written in?", "What is the language of this?", "Tell the language of the text."],
    "is_language": ["Is (it|the sentence|this) {L}?", "Is the text (in|written in) {L}?", "The (language|sentence) is {L}.", "It is (in|) {L}.", HELD, "Is the text {L}?", "The text is in {L}."],
    # A quoted word is the same token as in the JSON text, an unquoted one is not: values of words
    # are always quoted, names of fields in half of the wordings.
    "above": ["Is (the|) {q} (greater|larger|higher) than {v}?", "Is (the|) {q} above {v}?", "(The|) {q} is (more|greater) than {v}.", "Is (the|) {q} over {v}?", "{q} > {v}", "(The|) {q} is over {v}.", HELD, "Is the {q} more than {v}?", "The {q} is above {v}.", "Is it true that the {q} is greater than {v}?"],
    "below": ["Is (the|) {q} (less|smaller|lower) than {v}?", "Is (the|) {q} below {v}?", "(The|) {q} is (smaller|less) than {v}.", "Is (the|) {q} under {v}?", "{q} < {v}", "(The|) {q} is under {v}.", HELD, "The {q} is lower than {v}.", "The {q} is below {v}.", "Is it true that the {q} is less than {v}?"],
    "equals": ['Is (the|) {q} equal to "{v}"?', 'Is the {q} "{v}"?', '{q} is "{v}".', 'Does (the|) {q} equal "{v}"?', '{q} = "{v}"', 'Is "{v}" the {q}?', '"{v}" is the {q}.', HELD, 'The {q} is equal to "{v}".', 'Is {q} "{v}"?', 'Is it true that the {q} is "{v}"?'],
    "value": ["What is the {q}?", "Which {q} is (it|given|named)?", "{q}", "(Choose|Pick|Find) the {q}.", "(Value|Content) of (the|) {q}", "", HELD, "Which {q}?", "What {q} is it?", "Choose the right {q}."],
    # Pictures and clips.
    "colour": ["What (colour|color) is the {s}?", "Which (colour|color) (is|has) the {s}?", "(Colour|Color) of the {s}", "What is the (colour|color) of the {s}?", "Which (colour|color) does the {s} have?", HELD, "Tell the colour of the {s}.", "The {s} has which color?", "Choose the color of the {s}."],
    "dominant": ["Which (colour|color) (covers|fills) most of the (picture|image)?", "What is the (main|dominant|most common) (colour|color)?", "(Main|Dominant) (colour|color) of the (picture|image)", "Which (colour|color) is (most common|dominant)?", HELD, "Which color fills the largest part of the image?", "What is the dominant colour of the picture?", "Choose the main color."],
    "shape": ["Which shape (is it|do you see|is shown)?", "What shape (is it|do you see|is shown)?", "Shape of the object", "What is (in|on) the (picture|image)?", "(Choose|Pick|Name) the shape.", "", HELD, "Which shape is in the picture?", "What shape does the object have?", "Tell the shape."],
    "count": ["How many (objects|shapes|things) (are there|are shown)?", "How many (shapes|objects|things) do you see?", "(Count|Number) the (shapes|objects).", "Number of (objects|shapes)", "How many (objects|shapes) are in the (picture|image)?", HELD, "Count the objects in the picture.", "How many things can you count?", "What is the number of shapes?"],
    "position": ["Where is the (shape|object|{s})?", "(Position|Place) of the (object|shape|{s})", "In (which|what) part of the (picture|image) is the {s}?", "Where do you see the (shape|object|{s})?", "Where in the (picture|image) is the (object|shape)?", HELD, "Find the position of the {s}.", "In which part is the shape?", "Where can you see the object?"],
    "is": ["Is the shape {c}?", "Is there a {s}?", "Is it a {s}?", "The (object|shape) is {c}.", "There is a {c} {s}.", "Do you see a {c} {s}?", "(A|The) {s} is shown.", "Is the (object|thing) {c}?", HELD, "Is there a {c} {s}?", "It is {c}.", "Is there a {s} in the picture?"],
    "two": ["What (colour|color) is the {s} in the {n} (picture|image)?", "(Colour|Color) of the {s} in (picture|image) {d}", "In the {n} (picture|image), (what|which) (colour|color) is the {s}?", HELD, "Which color has the {s} in the {n} picture?", "Tell the colour of the {s} in image {d}."],
    "motion": ["In (which|what) direction does the {s} move?", "Which way does the {s} (move|go)?", "Direction of (motion|the movement|the {s})", "Where does the {s} (go|move)?", "(Direction|Motion|Movement)", HELD, "Where is the {s} moving to?", "Tell the direction of the {s}.", "Which direction does it move?"],
    "first": ["Which (colour|color) (comes|is) first?", "What is the first (colour|color)?", "First (colour|color)", "With which (colour|color) does the (clip|video) (start|begin)?", HELD, "Which color does the clip start with?", "Tell the first colour."],
    "last": ["Which (colour|color) (comes|is) last?", "What is the last (colour|color)?", "Last (colour|color)", "With which (colour|color) does the (clip|video) (end|finish)?", HELD, "Which color does the clip end with?", "Tell the last colour."],
    "order": ["In (which|what) order do the (colours|colors) come?", "(Order|Sequence) of the (colours|colors)", "Which (colour|color) (comes before|follows) which?", HELD, "Tell the order of the colours.", "What order do the colors have?"],
    "event": ["Does the {s} appear or disappear?", "What happens (to the {s}|in the clip|)?", "(Event|Change) in the (clip|video)", "Is the {s} there (all the time|from start to end)?", HELD, "Tell what happens to the {s}.", "What happens in the video?"],
    "appears": ["Does (a|the) {s} appear?", "(A|The) {s} appears (in the clip|).", "Does something (appear|show up)?", HELD, "Does an object appear in the clip?", "Something appears."],
    "vanishes": ["Does the {s} (disappear|vanish)?", "The {s} (disappears|vanishes).", "Does something disappear?", HELD, "Does the object disappear in the clip?", "Something disappears."],
}

IDS = {
    "route": "team route department topic queue".split(), "refund": "refund wants_refund money_back".split(),
    "cancel": "cancel wants_cancel churn".split(), "thanks": "thanks polite says_thanks".split(),
    "urgency": "urgency priority how_urgent".split(), "urgent": "urgent is_urgent".split(),
    "sentiment": "sentiment mood feeling".split(), "mention": "mention about".split(),
    "language": "language lang".split(), "is_language": "check_language right_language".split(),
    "above": "check over c".split(), "below": "check under c".split(), "equals": "check match c".split(),
    "value": "value field".split(), "colour": "colour color".split(),
    "dominant": "main_color dominant".split(), "shape": "shape form".split(),
    "count": "count number".split(), "position": "position where".split(), "is": "check match".split(),
    "two": "color colour".split(), "motion": "direction motion".split(), "first": ["first"],
    "last": ["last"], "order": ["order"], "event": "event change".split(), "appears": ["appears"],
    "vanishes": ["disappears", "vanishes"],
}

# Pairs of descriptions for true and false, of nouls.
YES_NO = {
    "refund": ["the (customer|client) wants money back;no refund is asked for", "a refund is (requested|wanted);no refund is (requested|wanted)", "asks for (a refund|money);does not ask for (a refund|money)", HELD, "money back is requested;no money is requested", "wants a refund;does not want a refund"],
    "cancel": ["something should be (cancelled|ended);nothing should be (cancelled|ended)", "wants to (cancel|stop|end);does not want to (cancel|stop|end)", "a cancellation is (requested|wanted);no cancellation is (requested|wanted)", HELD, "asks to cancel;does not ask to cancel", "an order or plan should be cancelled;nothing is cancelled"],
    "thanks": ["says (thanks|thank you);does not say (thanks|thank you)", "there (is a thank you|are thanks);there (is no thank you|are no thanks)", "the (writer|customer) is (thankful|grateful);the (writer|customer) is not (thankful|grateful)", HELD, "contains a thank you;contains no thank you", "thanks are given;no thanks are given"],
    "urgent": ["needs an answer (now|at once);can wait", "it is urgent;it is not urgent", HELD, "answer at once;there is time"],
    "appears": ["it was not there at first;it (was|is) there (from the start|or never)", "it (shows up|appears);it does not (show up|appear)", HELD, "something new is seen;nothing new is seen"],
    "vanishes": ["it is gone at the end;it is (there|still there) at the end", "it (vanishes|disappears);it does not (vanish|disappear)", HELD, "nothing is left at the end;it stays to the end"],
}

# Levels of a score, lowest first, joined by ";".
LEVELS = {
    "urgency": ["not urgent;soon;urgent", "can wait;this week;now", "no rush (at all|);within (some|a few) days;immediately", "low;medium;high", "(there is|) no hurry;in the next days;at once", "no rush;soon;emergency", HELD, "it can wait;within a few days;right now", "not urgent at all;this week;very urgent", "no hurry;soon;immediately"],
    "sentiment5": ["very negative;negative;neutral;positive;very positive", "furious;disappointed;neutral;pleased;(delighted|thrilled)", "very (angry|unhappy);unhappy;neither;happy;very happy", "(terrible|awful);bad;(neutral|normal);good;(excellent|fantastic)", "hates it;dislikes it;no opinion;likes it;loves it", HELD, "extremely negative;a bit negative;neutral;a bit positive;extremely positive", "very angry;disappointed;neutral;pleased;very happy"],
    "sentiment3": ["negative;neutral;positive", "(unhappy|angry|sad);neutral;happy", "bad;(normal|neither);good", "complaint;neutral;praise", HELD, "a bad mood;neutral;a good mood", "unhappy;neither;happy"],
    "count": ["none;one;two;three;four", "no (object|shape);one (object|shape);two (objects|shapes);three (objects|shapes);four (objects|shapes)", "0;1;2;3;4", HELD, "nothing;one thing;two things;three things;four things", "zero;one;two;three;four"],
}
