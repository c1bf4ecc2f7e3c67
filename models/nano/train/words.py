"""What the messages, sentences and JSON objects are made of (see wording.py for the notation)."""

from wording import HELD

# ---- Slot values. Held-out values never occur in training.
SLOTS = {
    "name": "Anna Ben Carla David Emma Frank Grace Henry Ivy Jack Karen Leo Maria Nick Olga Peter Rosa Sam Tina Victor Alice Bruno Clara Daniel Elena Felix Gloria Harold Irene James Katrin Louis Monica Nora Oscar Paula Robert Sofia Thomas Ursula".split()
    + [HELD] + "Bella Carlos Diana Erik Fiona George Hugo Lena Martin Yvonne".split(),
    "prod": "headphones,laptop,phone,camera,keyboard,printer,desk,chair,lamp,watch,tablet,backpack,jacket,coffee machine,bicycle,monitor,router,speaker,sofa,mirror,kettle,toaster,drill,helmet,umbrella,carpet,mattress,bookshelf,racket,suitcase".split(",")
    + [HELD] + "blender,guitar,tent,microphone,scooter,vacuum cleaner,piano,ladder".split(","),
    "feat": "calendar,search,settings,export,report,login,chat,map,upload,dashboard,inbox,menu,checkout,gallery,start,profile,order,message,download".split(",")
    + [HELD] + "billing,photo,contacts,timeline,statistics".split(","),
    "dev": "phone,laptop,tablet,computer,iPhone,notebook,television,browser".split(",") + [HELD] + "desktop,Mac,Android phone".split(","),
    "month": "January,February,March,April,May,June,July,August".split(",") + [HELD] + "September,October,November".split(","),
    "job": "designer,driver,engineer,accountant,nurse,teacher,writer,painter,baker,lawyer,gardener,translator".split(",") + [HELD] + "data analyst,cook,electrician,plumber".split(","),
    "plan": "basic,pro,team,premium,yearly,monthly,gold,student".split(",") + [HELD] + "business,starter,family".split(","),
    "city": "Paris,London,Berlin,Madrid,Rome,Oslo,Tokyo,Vienna,Prague,Athens,Dublin,Warsaw,Boston,Chicago".split(",") + [HELD] + "Lisbon,Cairo,Toronto,Zurich".split(","),
}
# Numbers of messages: training takes even ones, held-out sets odd ones (amounts, ids, counts).

# ---- What a message is about: team names, their descriptions, sentences.
TOPICS = {
    "billing": (
        ["billing", "payments", "finance", "invoices", "billing_(desk|office)", "payment_team", "Billing", "(invoice|billing)_help", HELD, "billing_team", "payment_desk", "finance_team", "Payments"],
        ["invoices and payments", "charges, invoices and receipts", "(questions|everything) about a (bill|charge|payment)", "money, cards and invoices", "(wrong|double|unknown) (charges|payments|bills)", "(payments|cards|receipts) and (bills|charges)", HELD, "wrong charges and invoices", "anything about a payment or bill", "cards, charges and receipts"],
        ["I was (charged|billed) (twice|two times|again) for (the|my|one) {prod}", "my (credit card|card|bank account) was charged {amt} dollars (by mistake|without reason|)", "the (invoice|bill) (for|of) {month} is (wrong|too high|not correct)",
         "there is an (unknown|extra|strange) (payment|charge) of {amt} dollars on my (card|account statement|bill)", "why is my (bill|invoice) (higher|larger) than in {month}", "(please|can you) send me the receipt for my (last|{month}) payment", "the tax on (my|the) (invoice|bill) (looks|is) wrong",
         "you took {amt} dollars from my (bank account|card) (two times|twice|again)", "I do not understand (the|this) (charge|amount|price) on my (bill|invoice)", "my payment was (declined|refused) but the money is gone", "I need (an invoice|a receipt|a bill) for (the|my) {prod}",
         "I paid {amt} dollars but the (bill|invoice) still says unpaid", "the price on the (invoice|bill|receipt) is not the price I paid", "how can I change my (payment method|credit card|bank card)", "I see a double (charge|payment) from {month} (on my card|)", "my bank says you charged (my card|me) again",
         "(a|the) payment of {amt} dollars (failed|was not booked)", "the (receipt|invoice) for {month} is missing", HELD,
         "my card shows two charges for the {prod}", "the bill for {month} has a wrong price", "I got charged {amt} dollars for nothing", "can you send the invoice of {month} again", "there is a payment on my bank account that I do not know", "two payments of {amt} dollars were taken from my card"]),
    "technical": (
        ["technical", "tech_support", "support", "bugs", "engineering", "technical_(desk|office)", "Technical", "app_(help|support)", HELD, "technical_team", "bug_reports", "tech", "engineering_team"],
        ["errors and crashes", "bugs, errors and things that do not work", "the (app|website|software) does not work", "technical problems with the (software|app|website)", "(crashes|bugs|errors) of the (app|software|website)", "an app that (freezes|crashes|does not start)", HELD, "problems with the app, errors and bugs", "software that crashes or does not load", "errors of the website and the app"],
        ["the app (crashes|closes|freezes) when I open the {feat} (page|)", "I (get|see) error {num} (on|in) the {feat} page", "the {feat} (page|screen) is not loading", "the (app|program|software) (freezes|crashes|hangs) after the (last|new|) update", "sync (stopped working|does not work) on my {dev}",
         "the {feat} button does nothing", "I (see|get) a (white|black|blank) screen when I start the app on my {dev}", "the website is (very|too) slow and shows error {num}", "the {feat} (page|function) does not work since the (last|new) update", "the app will not (start|open) on my {dev}",
         "there is a bug in the {feat} (page|screen|)", "the (software|program) stops with error {num}", "nothing happens when I (click|press) on {feat}", "the (page|screen) for the {feat} is broken", "your (app|website|software) keeps crashing on my {dev}", "(a|the) bug (stops|breaks) the {feat} page",
         "error {num} (appears|comes) when I (click|open|load) the {feat}", "the new version (crashes|does not load) on my {dev}", HELD,
         "since the update the {feat} crashes", "my {dev} shows error {num} when I open the app", "the {feat} freezes and does not load", "I found a bug on the {feat} page", "the app stops working when I click the {feat} button", "the software does not start on my {dev}"]),
    "shipping": (
        ["shipping", "delivery", "logistics", "orders", "shipping_(desk|office)", "parcel_(help|desk)", "Shipping", "delivery_help", HELD, "delivery_team", "shipment", "shipping_team", "Delivery"],
        ["parcels and delivery", "where is my order, late parcels", "delivery, tracking and couriers", "packages on the way", "(late|lost|missing) (parcels|packages|orders)", "(tracking|delivery) of (a parcel|packages|orders)", HELD, "late or lost packages", "tracking of parcels and orders", "couriers, packages and tracking"],
        ["my (parcel|package|order) has not (arrived|come)", "the (package|parcel|box) with the {prod} is (late|lost|missing)", "the tracking number {num} shows (no movement|nothing)", "the courier left the (box|parcel|package) at the wrong address", "when will my (order|parcel|{prod}) be delivered",
         "my order of (a|one) {prod} is still not here", "the delivery was planned for {month} and nothing came", "where is my (package|parcel|order)", "can you (send|deliver) the order to another address", "the tracking (page|) says delivered but I have no (parcel|package)", "the courier never (came|arrived) with my {prod}",
         "how long does (delivery|shipping) (take|need)", "my {prod} is stuck at customs", "I have waited {num} days for my (parcel|package|delivery)", "the (box|parcel) was delivered to my neighbour", "the (parcel|package) was sent to the wrong city", "is my (order|parcel) (already|) on the way",
         "the delivery of (my|the) {prod} is delayed", HELD,
         "my {prod} was not delivered", "the parcel is stuck and tracking shows nothing", "when does the package with my {prod} arrive", "the courier lost my order", "delivery of the {prod} takes too long, where is it", "I still wait for the parcel with the {prod}"]),
    "account": (
        ["account", "login", "access", "accounts", "account_(desk|office)", "user_help", "Account", "login_(desk|support)", HELD, "account_team", "login_help", "user_access", "access_team"],
        ["login, password and profile", "users who cannot (sign|log) in", "passwords, user names and profiles", "access to (an|the) account", "(lost|forgotten|wrong) passwords", "(profile|password|login) (problems|changes)", HELD, "sign in problems and passwords", "user profile and password changes", "access, login and user names"],
        ["I cannot (log|sign) in to my account", "I (forgot|lost) my password", "(please|can you) change the email address of my (profile|account)", "my (account|user|profile) is (locked|blocked)", "the password reset mail (never comes|does not come)", "how do I change my user name", "I cannot (sign|log) in with my (email|user name|password)",
         "it says that my password is (wrong|not correct)", "I need access to my (old|) account", "please unlock my (user|account|profile)", "how can I add a second user to my account", "my login code is not accepted", "I want to change the (phone number|email|name) in my profile", "the sign in page does not accept my password",
         "(somebody|someone) changed the password of my account", "I lost access to my (account|user)", "(please|can you) reset my (password|login)", HELD,
         "my password does not work and I cannot sign in", "please reset the password of my user", "I lost access to my profile", "my user is locked after the wrong password", "how do I change the email of my account", "my account does not accept the login code"]),
    "sales": (
        ["sales", "new_business", "quotes", "pricing", "sales_(desk|office)", "offers", "Sales", "(quote|sales)_help", HELD, "sales_team", "presales", "quote_desk", "pricing_team"],
        ["prices, quotes and new customers", "people who want to buy", "plans, offers and discounts", "questions before buying", "(offers|quotes|discounts) for (new customers|companies|teams)", "(prices|cost) of (plans|licences|products)", HELD, "buying, offers and prices", "new customers who want a quote", "discounts, plans and offers"],
        ["I want to buy {num} licences", "what does the {plan} plan cost", "can I get (a quote|an offer) for {num} users", "do you (offer|have) a discount for (schools|students|companies)", "we would like (a demo|a trial|an offer) of your product", "which plan is best for a team of {num} people", "how much is the {prod}", "(I am|we are) interested in the {plan} plan",
         "we want to (buy|order) {num} pieces of the {prod}", "is there a free trial of the {plan} plan", "please send (an offer|a quote|the prices) for {num} (users|people)", "can you tell me the price of the {prod}", "do you have a discount if we buy {num}", "our company wants to become a customer", "what is the (price|cost) of {num} (users|licences)",
         "(how much|what) does a licence cost for {num} people", "we (compare|look at) your plans and want a quote", HELD,
         "please send a quote for the {plan} plan", "how much does the {prod} cost if we buy {num}", "is there an offer for new customers", "we are interested in a demo for {num} people", "what do {num} licences cost us", "our team wants to buy the {plan} plan, what does it cost"]),
    "returns": (
        ["returns", "exchange", "returns_desk", "returns_(office|help)", "Returns", "wrong_items", HELD, "returns_team", "return_centre", "exchanges", "exchange_desk"],
        ["sending goods back", "return labels and exchanges", "broken or wrong items", "items that go back", "(returning|exchanging) (an item|goods|products)", "(broken|damaged|wrong) (goods|products|items)", HELD, "exchange of broken or wrong items", "returning goods with a label", "damaged items that go back"],
        ["the {prod} arrived (broken|damaged)", "how (do|can) I send the {prod} back", "I need a return label (for the {prod}|)", "I would like to exchange the {prod} for another one", "the {prod} has the wrong (colour|size)", "you sent me the wrong (item|product|{prod})", "the {prod} is too (small|large|big), I want to exchange it", "I want to (return|send back) the {prod}",
         "the {prod} has a (scratch|crack|hole)", "the item in the box is not the {prod} I ordered", "can I return an (opened|used) {prod}", "please tell me how to return the {prod}", "the {prod} came without a (cable|lid|key)", "the {prod} is (damaged|broken|scratched) and must go back", "(where|how) do I get a return label",
         "I got (a broken|a damaged|the wrong) {prod}", HELD,
         "I got the wrong {prod} and want to send it back", "the {prod} is broken, I need a label to return it", "can I exchange a {prod} that is too small", "the {prod} I got has the wrong size", "the wrong item was in the box, how do I return it"]),
    "careers": (
        ["careers", "jobs", "hr", "recruiting", "jobs_(desk|office)", "Careers", "hr_help", HELD, "careers_team", "hr_desk", "job_office", "Jobs"],
        ["job applications", "people looking for work", "open positions and interviews", "applications and interviews", "(work|jobs|internships) (at|in) (the|our) company", "people who (apply|want to work)", HELD, "applications for open jobs", "interviews and work", "internships and open positions"],
        ["I want to apply for the (job|position) (as|of) {job}", "is the (position|job) of {job} still open", "here is my (resume|application) for the {job} job", "when is my (job|) interview", "do you have work for a {job}", "I am a {job} and looking for (a job|work)", "what is the salary of a {job} at your company", "I applied for the {job} position in {month}",
         "can I do an internship (as a {job}|in {city})", "to whom do I send my (application|resume)", "my interview for {job} was moved", "did you (get|read) my (application|resume) as {job}", "I would like to work (for you|at your company) as a {job}", HELD,
         "I am looking for work as a {job}", "is there an open job for a {job}", "I sent my application and resume in {month}", "when is the interview for the {job} position", "do you have an internship for a {job}"]),
    "press": (
        ["press", "media", "public_relations", "press_(desk|help)", "Press", "news_office", HELD, "press_office", "media_team", "press_team"],
        ["journalists and media", "interviews for newspapers", "news, articles and television", "(journalists|writers) who (ask|want an interview)", "(articles|stories) in (newspapers|magazines)", HELD, "articles and journalists", "newspapers and television", "journalists who write an article"],
        ["I am a journalist and write about your company", "can we interview your (director|founder) for our (newspaper|magazine)", "I would like a photo of your (founder|director|office) for (an article|our newspaper)", "our television (show|station) wants to film in your office", "is there a press kit", "we are writing (an article|a story) about the {prod}",
         "who can answer questions from the (media|press)", "our (magazine|newspaper) plans a story about you", "can I quote you in my article", "I need a (statement|comment) for (my article|the news)", "(a|our) reporter wants to (visit|film|interview) you", "we make a (film|show) for television about the {prod}", HELD,
         "our newspaper writes an article about your company", "I am a journalist, who answers my questions", "we want to film the {prod} for television", "our magazine wants to interview your founder about the {prod}"]),
}

# ---- Requests: (sentences that make it true, sentences that deny it).
REFUND = (
    ["please refund (me|my order|the money)", "I (want|need|would like|expect) my money back", "please give me (a|my) refund", "I (ask for|expect|demand|request) a (full|) refund", "(kindly|please) (return|pay back|send back) the money (to my card|)", "I would like to get (my money|the {amt} dollars) back", "send me back the {amt} dollars",
     "please pay (the money|me) back", "a refund would be (the right thing|fair|fine)", "can I (get|have) a refund", "I want you to (refund|pay back) {amt} dollars", "when do I get my money back", HELD, "I want a full refund", "please return my money", "give me my {amt} dollars back", "could you refund the {amt} dollars"],
    ["I do not (want|need|ask for) a refund", "I do not need my money back", "no refund is needed", "you (can|may) keep the money", "a refund is not (needed|necessary)", "I am not asking for (money|a refund)", HELD, "I do not want my money back", "there is no need for a refund", "please keep the money, no refund"])
CANCEL = (
    ["please cancel my (subscription|plan|order|membership)", "I (want|need|would like|decided) to cancel (the order|my plan|my account|the contract)", "please (stop|end) my (plan|subscription|membership)", "cancel my (account|order|contract) (please|)", "I want to end my {plan} (plan|contract)", "close my (membership|account)", "please cancel everything",
     "I would like to (cancel|end|stop) the {plan} plan", "end my (contract|subscription) please", "how can I cancel (my plan|the order)", "I am cancelling my (subscription|{plan} plan)", HELD, "please cancel my {plan} plan", "I want to stop my subscription", "cancel the order of the {prod}", "I need to end my subscription"],
    ["please do not cancel (anything|my plan|the order)", "I want to keep my (plan|account|subscription)", "I do not want to (cancel|end it|stop it)", "keep my (subscription|plan) running", "I will stay a customer", "there is no need to cancel", HELD, "do not cancel my plan", "I want to keep my subscription running", "please keep my order, do not cancel"])
THANKS = ["thank you (very much|so much|)", "thanks (a lot|)", "many thanks for (your|the) (help|answer|work)", "I (really|) appreciate your help", "thanks in advance", "thank you for (reading|answering|looking at) this", "(a|one) big thank you to (you|your team)", "I am (very|really|) (thankful|grateful)", "thanks to (you all|the team)",
          HELD, "many thanks", "thank you for your help", "thanks very much", "I am grateful for your help, thank you"]
URGENCY = [
    ["there is no (rush|hurry)", "whenever you have time", "take your time", "it is not (urgent|important)", "no (hurry|rush) at all", "this can wait", "answer when it suits you", "it (has|can take) time", "it can wait (until next month|)", "(I am|we are) not in a hurry", HELD, "there is no hurry at all", "it can wait, take your time", "this is not urgent at all"],
    ["please (reply|answer|look at it) this week", "I would like an answer in the next days", "could you look at it soon", "please (answer|reply) within a few days", "I hope to hear from you soon", "it would be good to solve it this week", "(a reply|an answer) (this week|in a few days|soon) would be (good|nice|fine)", "please solve it in the next (days|week)",
     HELD, "please look at this within a few days", "I would like to hear from you this week", "please reply soon"],
    ["this is (very|really|extremely|) urgent", "I need (an answer|help|a solution) (right now|now|today|at once)", "please (fix|solve|answer) (it|this) (immediately|at once|right now|today)", "we lose money every (minute|hour)", "it must be (solved|fixed) (today|now|immediately)", "this is an emergency", "answer (at once|immediately)", "I cannot wait (any longer|another day)",
     "we need help (now|immediately|today)", "it is (critical|urgent) for us", "every minute counts", HELD, "it is really urgent, answer now", "please help immediately", "this is an emergency, we need it now", "it must be answered at once"],
]
_STRONG_BAD = "(terrible|awful|horrible|disgusting|outrageous)"
_MILD_BAD = "(annoying|disappointing|frustrating|not good|not great)"
_MILD_GOOD = "(good|nice|fine|pleasant|helpful)"
_STRONG_GOOD = "(fantastic|amazing|perfect|wonderful|excellent)"
SENTIMENT = [
    ["I am (furious|extremely angry|really mad)", "this is the worst (service|company|product|experience) ever", "this is (absolutely|simply|just) " + _STRONG_BAD, "I hate (your company|it|this|your service)", "what a (disaster|nightmare|mess)", "you are " + _STRONG_BAD, "never again", "your (service|team|product) is " + _STRONG_BAD, "(the|your) (support|quality) was " + _STRONG_BAD, "I have never seen (such a|a worse) (disaster|mess)", "I am (so|very) angry and furious",
     HELD, "it is a terrible disaster", "I am furious, what an awful company", "simply the worst service", "everything about it was horrible"],
    ["I am (a bit|a little|slightly|somewhat) (disappointed|unhappy|sad)", "this is (a bit|a little|slightly|somewhat|rather) " + _MILD_BAD, "I am not (very|really|too) happy (with it|about this|)", "that is (not good|not great|rather annoying)", "I expected (more|better)", "I am (disappointed|unhappy) (about this|with it|)", "it (could|should) be better", "the (service|product) is (a bit|somewhat|rather) " + _MILD_BAD,
     HELD, "it is a little disappointing", "I am somewhat unhappy about it", "this is annoying and not good", "I expected a better product"],
    ["here are the details", "I have (a|one) question", "this is for your information", "I write about the following", "my customer number is {num}", "I am writing from {city}", "you (can|may) (call|write to) me", "the details are below", "I bought it in {month}", HELD, "I have a question about the following", "my number is {num}", "I live in {city}"],
    ["I like (the product|it|your service)", "it works (well|fine|nicely) so far", "I am (happy|pleased|content) (with it|about it|)", "your (team|staff) is (friendly|nice|helpful)", "it is a " + _MILD_GOOD + " (product|service)", "(nice|good) work", "the (service|product|support) is " + _MILD_GOOD, "that (is|was) " + _MILD_GOOD, "I am (quite|rather) (happy|pleased)",
     HELD, "I am happy with the product", "it is nice and works well", "your staff is helpful, good work"],
    ["I love (it|the product|your service|your company)", "this is the best (product|service|company|experience) ever", "(absolutely|simply|just) " + _STRONG_GOOD, "I am (thrilled|delighted|overjoyed)", "your (service|team|product) is " + _STRONG_GOOD, "perfect in every way", "I am (extremely|so very) happy", "(wonderful|amazing), simply (wonderful|perfect)", "it is " + _STRONG_GOOD + " and I love it", "what (a fantastic|an amazing|an excellent) (product|service)",
     HELD, "I love your amazing product", "fantastic, simply the best", "I am thrilled, it is perfect", "everything about it was wonderful"],
]
GREETINGS = ["Hello", "Hi", "Hi there", "Dear team", "Good morning", "Hello {name} here", "To whom it may concern", "Dear (Sir or Madam|support)", "", "", "", HELD, "Good evening", "Hello team", "Hi, {name} here", "", ""]
FAREWELLS = ["Regards, {name}", "Best, {name}", "{name}", "Kind regards, {name}", "Yours, {name}", "", "", "", HELD, "Best regards, {name}", "Greetings, {name}", "", ""]
# Frames around a sentence; {x} is the sentence in lower case.
FRAMES = ["{x}", "{x}", "{x}", "{x}", "I am writing (to you|) because {x}", "just so you know, {x}", "(as I said|again|sadly|also|well), {x}", "the (problem|point|thing) is: {x}", "{x}, can you help", "(my question|my message|about my order): {x}", HELD, "{x}", "{x}", "let me tell you: {x}", "I write because {x}"]

# ---- Sentences of four languages: subjects, verbs, objects, ends.
LANGUAGES = {
    "en": (["the man", "the woman", "my friend", "the teacher", "our neighbour", "a child", "the doctor", "my sister", "the old farmer", "your father", "they all", "this student", "the girls", "our driver who is tired", "her brother and his wife", "the big family", "the young boy", "some of them", HELD, "my brother", "the young girl", "the driver"],
           ["buys", "sees", "has", "wants", "eats", "finds", "sells", "carries", "likes", "has lost", "would like", "never gets", "is looking for", "would never take", "does not need", "brought us", "should bring", "took", HELD, "takes", "needs", "brings"],
           ["a book", "the bread", "two apples", "the house", "a small dog", "the red car", "some water", "a letter", "the key", "many things", "the white horse", "what was left", "another coat", "the tables and chairs", "a very big room", "the cats", "milk and sugar", "their own garden", HELD, "the table", "a big cat", "some milk"],
           ["in the morning", "with his father", "near the station", "every day", "because it is cold", "but not today", "in the city", "when we are there", "after the holidays", "and that is all", "without the others", "in the afternoon", "on Sunday evening", "next to the old church", "if it does not rain", "at the end of the week", "while we are eating", HELD, "in the evening", "near the church", "when it rains"]),
    "es": (["el hombre", "la mujer", "mi amigo", "la maestra", "nuestro vecino", "un niño", "el médico", "mi hermana", "el viejo granjero", "tu padre", "todos ellos", "este estudiante", "las chicas", "nuestro conductor que está cansado", "su hermano y su esposa", "la familia grande", "el joven", "algunos de ellos", HELD, "mi hermano", "la chica joven", "el conductor"],
           ["compra", "ve", "tiene", "quiere", "come", "encuentra", "vende", "lleva", "necesita", "ha perdido", "quisiera", "nunca recibe", "está buscando", "nunca tomaría", "no necesita", "nos trajo", "busca siempre", "tomó", HELD, "toma", "busca", "trae"],
           ["un libro", "el pan", "dos manzanas", "la casa", "un perro pequeño", "el coche rojo", "un poco de agua", "una carta", "la llave", "muchas cosas", "el caballo blanco", "lo que quedaba", "otro abrigo", "las mesas y las sillas", "un cuarto muy grande", "los gatos", "leche y azúcar", "su propio jardín", HELD, "la mesa", "un gato grande", "la leche"],
           ["por la mañana", "con su padre", "cerca de la estación", "todos los días", "porque hace frío", "pero hoy no", "en la ciudad", "cuando estamos allí", "después de las vacaciones", "y eso es todo", "sin los otros", "después de la tarde", "el domingo por la noche", "al lado de la iglesia vieja", "si no llueve", "al final de la semana", "mientras comemos", HELD, "por la tarde", "cerca de la iglesia", "cuando llueve"]),
    "fr": (["l'homme", "la femme", "mon ami", "la maîtresse", "notre voisin", "un enfant", "le médecin", "ma sœur", "le vieux fermier", "ton père", "tous les gens", "cet étudiant", "les filles", "notre chauffeur qui est fatigué", "son frère et sa femme", "la grande famille", "le jeune garçon", "certains d'entre eux", HELD, "mon frère", "la jeune fille", "le chauffeur"],
           ["achète", "voit", "a", "veut", "mange", "trouve", "vend", "porte", "aime", "a perdu", "voudrait", "ne reçoit jamais", "est à la recherche de", "ne prendrait jamais", "n'a pas besoin de", "nous apporta", "cherche toujours", "prit", HELD, "prend", "cherche", "apporte"],
           ["un livre", "le pain", "deux pommes", "la maison", "un petit chien", "la voiture rouge", "de l'eau", "une lettre", "la clé", "beaucoup de choses", "le cheval blanc", "ce qui restait", "un autre manteau", "les tables et les chaises", "une très grande chambre", "les chats", "du lait et du sucre", "son propre jardin", HELD, "la table", "un grand chat", "du lait"],
           ["le matin", "avec son père", "près de la gare", "tous les jours", "parce qu'il fait froid", "mais pas aujourd'hui", "dans la ville", "quand nous sommes là", "après les vacances", "et c'est tout", "sans les autres", "dans la soirée", "le dimanche soir", "à côté de la vieille église", "s'il ne pleut pas", "à la fin de la semaine", "pendant que nous mangeons", HELD, "le soir", "près de l'église", "quand il pleut"]),
    "de": (["der Mann", "die Frau", "mein Freund", "die Lehrerin", "unser Nachbar", "ein Kind", "der Arzt", "meine Schwester", "der alte Bauer", "dein Vater", "alle Leute", "dieser Student", "die Mädchen", "unser Fahrer, der müde ist", "ihr Bruder und seine Frau", "die große Familie", "der junge Mann", "einige von ihnen", HELD, "mein Bruder", "das junge Mädchen", "der Fahrer"],
           ["kauft", "sieht", "hat", "will", "isst", "findet", "verkauft", "trägt", "mag", "verlor", "möchte", "bekommt nie", "sucht immer", "würde nie nehmen", "braucht nicht", "brachte uns", "sollte bringen", "nahm", HELD, "nimmt", "braucht", "bringt"],
           ["ein Buch", "das Brot", "zwei Äpfel", "das Haus", "einen kleinen Hund", "das rote Auto", "etwas Wasser", "einen Brief", "den Schlüssel", "viele Dinge", "das weiße Pferd", "was noch übrig war", "einen anderen Mantel", "die Tische und Stühle", "ein sehr großes Zimmer", "die Katzen", "Milch und Zucker", "den eigenen Garten", HELD, "den Tisch", "eine große Katze", "die Milch"],
           ["am Morgen", "mit seinem Vater", "beim Bahnhof", "jeden Tag", "weil es kalt ist", "aber heute nicht", "in der Stadt", "wenn wir dort sind", "nach den Ferien", "und das ist alles", "ohne die anderen", "am Nachmittag", "am Sonntagabend", "neben der alten Kirche", "wenn es nicht regnet", "am Ende der Woche", "während wir essen", HELD, "am Abend", "bei der Kirche", "wenn es regnet"]),
}
# The names of the languages are what the skill is about: both splits use them.
LANGUAGE_NAMES = {"en": "English", "es": "Spanish", "fr": "French", "de": "German"}
LANGUAGE_DESCRIPTIONS = ["(written|a text|words) in {L}", "the (text|sentence|language) is {L}", "{L} (text|words|language)", HELD, "a sentence in {L}", "it is written in {L}"]

# ---- JSON objects.
NUMBER_FIELDS = "age price stock score weight count level speed amount total length width rooms pages votes points days users items floor seats visits rank depth power budget orders quantity balance duration".split() + [HELD] + "height size distance minutes rating".split()
WORD_FIELDS = {
    "city": SLOTS["city"],
    "color": "red green blue black white yellow pink grey brown silver".split() + [HELD] + "orange purple golden".split(),
    "status": "open closed paid new done late sent broken empty full".split() + [HELD] + "ready lost active".split(),
    "name": SLOTS["name"],
    "plan": SLOTS["plan"],
    "job": SLOTS["job"],
    "product": SLOTS["prod"],
    "month": SLOTS["month"],
    "animal": "dog cat horse bird mouse sheep tiger snake rabbit goose".split() + [HELD] + "eagle donkey turtle".split(),
    "fruit": "apple banana cherry grape lemon melon peach plum".split() + [HELD] + "mango pear fig".split(),
    "material": "wood iron glass paper stone cotton leather rubber".split() + [HELD] + "steel wool marble".split(),
    "sport": "tennis soccer rowing boxing golf hockey cycling".split() + [HELD] + "rugby fencing skiing".split(),
}
OBJECT_NAMES = ["order", "item", "record", "data", "ticket", "entry", HELD, "row", "details"]
